"""redis-py as a driver (see ../README.md): redis_py.py PORT RESP SECRET"""
import redis

import driver

RESP = {} if redis.VERSION < (5,) else {"protocol": driver.resp}
client = redis.Redis(port=driver.port, password=driver.secret, decode_responses=True, **RESP)


def many(commands, transaction):
    pipeline = client.pipeline(transaction=transaction)
    for words in commands:
        pipeline.execute_command(*words)
    return pipeline.execute()


client.ping()
driver.run("redis-py", redis.__version__, lambda words: client.execute_command(*words), many)

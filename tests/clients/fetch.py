"""Fetches and builds the drivers of clients in a folder: {client: (command, environment)}."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
CC = os.environ.get("CC", "cc")
PYTHON = {"PYTHONDONTWRITEBYTECODE": "1"}
WARNINGS = ["-Wno-everything"] if "clang" in CC else ["-w"]


class Missing(Exception):
    """What is not here: a tool, a package, the network."""


class Broken(Exception):
    """A driver that does not compile."""


def run(words, folder, problem, env=None):
    """Runs a command and returns its output; if it fails, raises `problem` with the end of that."""
    if shutil.which(words[0]) is None:
        raise Missing(f"{words[0]} is missing")
    what = " ".join(words[:3])
    try:
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=1800, env={**os.environ, **(env or {})})
    except subprocess.TimeoutExpired as error:
        raise problem(f"{what}: not done after {error.timeout:.0f} s") from error
    if re.search("rustc [0-9.]+ is not supported|requires rustc", done.stdout):
        raise Missing(f"{what}: a newer rustc is missing")
    if done.returncode != 0:
        raise problem(f"{what}: {done.stdout.strip()[-1500:]}")
    return done.stdout


def copy(language, folder):
    return shutil.copytree(os.path.join(HERE, language), os.path.join(folder, language))


def script(name):
    return os.path.join(HERE, name)


# ---- as Debian has them ----


def debian_python(_):
    for python in "python3", "/usr/bin/python3":
        if shutil.which(python) and subprocess.run([python, "-c", "import redis"], stderr=subprocess.DEVNULL).returncode == 0:
            return {"redis-py": ([python, script("python/redis_py.py")], PYTHON)}
    raise Missing("python3-redis is missing")


def debian_node(_):
    if not shutil.which("node") or not os.path.isdir("/usr/share/nodejs/redis"):
        raise Missing("node-redis is missing")
    return {"node-redis": (["node", script("node/driver.js"), "redis"], {"NODE_PATH": "/usr/share/nodejs"})}


def debian_c(folder):
    if not os.path.isdir("/usr/include/hiredis"):
        raise Missing("libhiredis-dev is missing")
    run([CC, *WARNINGS, "-o", "hiredis", script("c/hiredis.c"), "-lhiredis"], folder, Broken)
    return {"hiredis": ([os.path.join(folder, "hiredis")], {})}


# ---- the newest, from the registries of their languages ----


def pip(folder, package):
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", "pip", package], folder, Missing)
    return {**PYTHON, "PYTHONPATH": os.path.join(folder, "pip")}


def newest_python(folder):
    return {"redis-py": ([sys.executable, script("python/redis_py.py")], pip(folder, "redis"))}


def newest_glide(folder):
    return {"valkey-glide": ([sys.executable, script("python/valkey_glide.py")], pip(folder, "valkey-glide-sync"))}


def newest_c(folder):
    """The source of hiredis is part of its package for Python."""
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "hiredis"], folder, Missing)
    with tarfile.open(glob.glob(os.path.join(folder, "hiredis-*.tar.gz"))[0]) as archive:
        archive.extractall(folder)
    vendor = glob.glob(os.path.join(folder, "hiredis-*", "vendor"))[0]
    sources = [os.path.join(vendor, "hiredis", name + ".c") for name in ("alloc", "async", "hiredis", "net", "read", "sds", "sockcompat")]
    run([CC, *WARNINGS, "-I", vendor, "-o", "hiredis", script("c/hiredis.c"), *sources], folder, Broken)
    return {"hiredis": ([os.path.join(folder, "hiredis")], {})}


def newest_node(folder):
    if int(run(["node", "-p", "process.versions.node"], folder, Missing).split(".")[0]) < 20:
        raise Missing("node 20 is missing")
    run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "redis", "ioredis"], folder,
        Missing)
    env = {"NODE_PATH": os.path.join(folder, "node_modules")}
    return {name: (["node", script("node/driver.js"), module], env)
            for name, module in (("node-redis", "redis"), ("ioredis", "ioredis"))}


def newest_go(folder):
    there = copy("go", folder)
    with open(os.path.join(there, "rueidis.go"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (("github.com/redis/rueidis", "github.com/valkey-io/valkey-go"), ('"rueidis"', '"valkey-go"'),
                     ("rueidis", "valkey")):
        text = text.replace(old, new)
    with open(os.path.join(there, "valkey_go.go"), "w", encoding="utf-8") as file:
        file.write(text)
    run(["go", "mod", "init", "driver"], there, Missing)
    run(["go", "get", "github.com/redis/go-redis/v9@latest", "github.com/redis/rueidis@latest",
         "github.com/gomodule/redigo@latest", "github.com/valkey-io/valkey-go@latest"], there, Missing)
    run(["go", "build", "-o", "driver", "."], there, Broken)
    return {name: ([os.path.join(there, "driver"), name], {}) for name in ("go-redis", "rueidis", "redigo", "valkey-go")}


def newest_rust(folder):
    there = copy("rust", folder)
    run(["cargo", "fetch", "--quiet"], there, Missing)
    run(["cargo", "build", "--quiet", "--offline"], there, Broken, {"CARGO_TARGET_DIR": os.path.join(there, "target")})
    return {name: ([os.path.join(there, "target", "debug", name)], {}) for name in ("redis-rs", "fred")}


def newest_java(folder):
    there = copy("java", folder)
    maven = ["mvn", "--batch-mode", "--quiet"]
    run([*maven, "versions:use-latest-releases", "-DgenerateBackupPoms=false",
         "-Dmaven.version.ignore=(?i).*(alpha|beta|preview|[-.](rc|m|cr)[0-9-]).*"], there, Missing)
    run([*maven, "dependency:copy-dependencies", "-DoutputDirectory=jars"], there, Missing)
    run(["javac", "-nowarn", "-cp", "jars/*", "-d", "classes", *[os.path.basename(f) for f in glob.glob(there + "/*.java")]],
        there, Broken)
    path = os.path.join(there, "classes") + ":" + os.path.join(there, "jars", "*")
    drivers = {name: (["java", "-cp", path, name + "Driver"], {}) for name in ("Jedis", "Lettuce", "Redisson")}
    return {**drivers, "Lettuce, `GenericMapOutput`": (drivers["Lettuce"][0], {"LETTUCE_OUTPUT": "map"})}


DEBIAN = [debian_python, debian_node, debian_c]
NEWEST = [newest_python, newest_glide, newest_c, newest_node, newest_go, newest_rust, newest_java]

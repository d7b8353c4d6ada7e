# shellcheck shell=sh disable=SC2154  # dir is set by the caller
# make_ca NAME: a CA in $dir/NAME.crt. make_certificate NAME CA CN: one by it, for localhost and the loopback addresses.
# Both files of a certificate are written aside and renamed, as a careful renewal does. The caller has dir and die().
make_ca() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" \
        -keyout "$dir/$1.key" -out "$dir/$1.crt" 2>"$dir/openssl.err" || die "openssl: $(cat "$dir/openssl.err")"
}
make_certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$3" \
        -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -keyout "$dir/new.key" -out "$dir/new.csr" \
        2>"$dir/openssl.err" || die "openssl: $(cat "$dir/openssl.err")"
    openssl x509 -req -in "$dir/new.csr" -CA "$dir/$2.crt" -CAkey "$dir/$2.key" -CAcreateserial -days 2 \
        -copy_extensions copy -out "$dir/new.crt" 2>"$dir/openssl.err" || die "openssl: $(cat "$dir/openssl.err")"
    mv "$dir/new.key" "$dir/$1.key"
    mv "$dir/new.crt" "$dir/$1.crt"
}

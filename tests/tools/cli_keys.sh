#!/bin/sh
# SPDX-License-Identifier: MIT
# pnradar-keys, and who may subscribe with a key.
# usage: cli_keys.sh BIN_FOLDER; prints TAP.
# shellcheck source=tests/tools/tap.sh
. "$(dirname "$0")/tap.sh"

cd "$work" || exit 1
umask 022
status 0 "$bin/pnradar-keys" radar && [ "$(stat -c %a radar.secret radar.public | tr '\n' ' ')" = '600 644 ' ] &&
    [ "$(cat radar.public)" = "$(cat out)" ] && [ "$(wc -c <radar.secret)" -eq 41 ] && ! cmp -s radar.secret radar.public
report $? "a pair of keys: modes 0600 and 0644, and the public one printed"
cp radar.secret before
status 78 "$bin/pnradar-keys" radar && says 'radar.public exists already' && cmp -s before radar.secret
report $? "no key is replaced"
rm radar.public
status 78 "$bin/pnradar-keys" radar && says 'radar.secret exists already' && [ ! -e radar.public ] && cmp -s before radar.secret
report $? "both files or none"
status 64 "$bin/pnradar-keys" && says 'NAME'
report $? "a name is wanted"
status 74 "$bin/pnradar-keys" nowhere/radar && says 'nowhere/radar.public: No such file'
report $? "a folder that is not there"

rm radar.secret
for name in radar alice bob; do "$bin/pnradar-keys" $name >/dev/null || exit 1; done
mkdir clients
cp alice.public clients/
cat >radar.conf <<END2
[stream]
name = test
[source]
rate_hz = 1e6
format = ci16
pace = real-time
[code]
type = m-sequence
degree = 9
[publisher]
endpoint = ipc://$work/socket
curve_secret_path = radar.secret
curve_clients = clients
[echo]
periods = 40
noise_rms = 0.05
[target.1]
range_m = 20000.5
amplitude = 0.1
END2
"$bin/pnradar-echo" -c radar.conf echo.ci16 2>err
key=$(cat radar.public)

hear 0 --curve-key "$key" --curve-secret alice.secret -- && says '40 results received, 0 lost'
report $? "an allowed key hears every result"

# refused LISTENER_ARGUMENT...: a listener that hears nothing of a publisher that waits for one, for 2 s or longer: on a
# busy machine no handshake may end within 2 s.
patience="2 10 50"
refused() {
    for patience_s in $patience; do
        PNR_LOG=info "$pnradar" -c radar.conf -s publisher.wait_s=60 echo.ci16 2>publisher &
        publisher=$!
        PNR_LOG=info "$bin/pnradar-listen" -c radar.conf --timeout "$patience_s" "$@" >out 2>err </dev/null
        got=$?
        kill -TERM $publisher
        wait $publisher
        grep -q -e 'authentication refused' -e 'the handshake failed' -e 'wants a key' err && break
    done
    [ $got -eq 69 ] && [ ! -s out ]
}
refused --curve-key "$key" --curve-secret bob.secret && says "warning: ipc://$work/socket: authentication refused: .* key of --curve-secret\$" &&
    says "error: nothing arrived within [0-9]* s: ipc://$work/socket: authentication refused" && grep -q "its key $(sed 's/[][*.^$\/]/\\&/g' bob.public) is not in" publisher
report $? "another key is refused: the listener says so at once, the publisher names it"
refused --curve-key "$key" && says 'authentication refused: .*--curve-secret$'
report $? "a key of the moment is refused"
patience="4 10 50" # longer than the silence after which a listener warns
refused && says 'the publisher wants a key.*--curve-key' && [ "$(grep -c 'warning: .*the publisher wants a key' err)" -eq 1 ]
report $? "no key hears nothing, and knows why: one warning says it"
patience="2 10 50"
refused --curve-key "$(cat bob.public)" --curve-secret alice.secret && says "is --curve-key the publisher's public key"
report $? "the key of another publisher"

chmod 640 alice.secret
status 77 "$bin/pnradar-listen" -c radar.conf --curve-key "$key" --curve-secret alice.secret && says 'mode 0640' && says 'chmod 600'
report $? "a secret key that others may read is refused"
status 64 "$bin/pnradar-listen" -c radar.conf --curve-secret bob.secret && says 'needs --curve-key'
report $? "a secret key needs the publisher's key"
plan

#!/bin/sh
# Makes the golden stores of this folder with keytool (Java 17 or newer): sh make.sh [KEYTOOL]
set -eu
cd "$(dirname "$0")"
rm -f ./*.jks ./*.p12 ./*.jceks
keytool="${1:-keytool}"
k() { "$keytool" -J-Xshare:auto -J-XX:TieredStopAtLevel=1 "$@" 2>/dev/null; }
STORE='st0re päß' KEY='k3y päß'

# a key of its own password whose chain has an authority in it
k -genkeypair -storetype JKS -keystore ca.jks -storepass "$STORE" -keypass "$STORE" -alias ca -dname CN=authority \
  -keyalg EC -groupname secp256r1 -validity 36500 -ext bc:c
k -genkeypair -storetype JKS -keystore ca.jks -storepass "$STORE" -keypass "$KEY" -alias own -dname CN=client \
  -keyalg EC -groupname secp256r1 -validity 36500 -signer ca -signerkeypass "$STORE"
k -importkeystore -srckeystore ca.jks -srcstorepass "$STORE" -srcalias own -srckeypass "$KEY" \
  -destkeystore key.jks -deststoretype JKS -deststorepass "$STORE" -destkeypass "$KEY" -noprompt
mv ca.jks two-keys.jks
k -exportcert -rfc -keystore two-keys.jks -storepass "$STORE" -alias ca | tr -d "\r" > authority.pem
k -exportcert -rfc -keystore two-keys.jks -storepass "$STORE" -alias own | tr -d "\r" > client.pem

# the same as PKCS#12, as Java writes it today, and as Java wrote it until 2021 (RC2-40)
p12() {
  k -importkeystore -srckeystore key.jks -srcstorepass "$STORE" -srckeypass "$KEY" -srcalias own \
    -destkeystore "$1" -deststoretype PKCS12 -deststorepass "$2" -destkeypass "$2" -noprompt ${3:-}
}
p12 key.p12 "$STORE"
p12 legacy.p12 changeit -J-Dkeystore.pkcs12.legacy # Java gets a password that is not ASCII wrong there

# trusted certificates only
for alias in one two; do
  k -importcert -noprompt -storetype JKS -keystore trust.jks -storepass "$STORE" -alias $alias -file authority.pem
  k -importcert -noprompt -storetype PKCS12 -keystore trust.p12 -storepass "$STORE" -alias $alias -file authority.pem
done
k -importcert -noprompt -storetype PKCS12 -keystore open.p12 -storepass unused -alias one -file authority.pem \
  -J-Dkeystore.pkcs12.macAlgorithm=NONE -J-Dkeystore.pkcs12.certProtectionAlgorithm=NONE
k -importcert -noprompt -storetype JCEKS -keystore trust.jceks -storepass "$STORE" -alias one -file authority.pem

# out of date
k -genkeypair -storetype JKS -keystore expired.jks -storepass "$STORE" -keypass "$STORE" -alias old -dname CN=old \
  -keyalg EC -groupname secp256r1 -startdate '2020/01/01 00:00:00' -validity 30

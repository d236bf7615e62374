# Sourced by run.sh, check.sh and bench.sh: the newest JDK here that has the foreign function API, as JAVA_HOME. Where
# there is none, `missing` says what is.

missing=
version_of() { "$1/bin/javac" -version 2>/dev/null | sed -n 's/^javac \([0-9]*\).*/\1/p'; }

newest_jdk() {
    local best=0 found home version
    for home in "${JAVA_HOME:-}" "$(dirname "$(dirname "$(readlink -f "$(command -v javac || echo /)")")")" \
        /usr/lib/jvm/* /Library/Java/JavaVirtualMachines/*/Contents/Home; do
        [ -x "$home/bin/javac" ] || continue
        version=$(version_of "$home")
        if [ "${version:-0}" -gt "$best" ]; then
            best=$version found=$home
        fi
    done
    [ "$best" -ge 22 ] || { missing="the foreign function API needs a JDK 22 or later, the newest here is ${best/#0/none}"; return 1; }
    export JAVA_HOME=$found
}

java_at_hand() {
    newest_jdk || return 1
    command -v mvn >/dev/null || { missing="Maven (mvn) is not installed"; return 1; }
}

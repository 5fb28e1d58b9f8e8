#!/bin/sh
# Installs minuted as its image has it; deploy/Dockerfile calls this, and so does a test.
#
#   deploy/install.sh packages FOLDER    FOLDER/.venv with the locked packages, without those for developers
#   deploy/install.sh program FOLDER     FOLDER with the program, and FOLDER/.venv/bin/minuted
#
# PYTHON names the interpreter (python3 unless set): 3.11 or 3.12, with pip. Nothing is compiled; every package
# is a wheel whose hash is in locks/default.txt.
set -eu

here="$(cd "$(dirname "$0")" && pwd)"
checkout="$(dirname "$here")"
python="${PYTHON:-python3}"

usage() {
    echo "usage: deploy/install.sh packages|program FOLDER" >&2
    exit 2
}

install_into() { # FOLDER ARGUMENTS...: pip of the base, so that the environment needs none of its own
    venv="$1/.venv"
    shift
    "$python" -m pip --python "$venv/bin/python" install --disable-pip-version-check --no-input --quiet \
        --no-cache-dir --root-user-action ignore --no-compile --no-deps "$@"
}

compile() { # FOLDER...: the user of the image may not write byte code, and would compile at each start
    "$folder/.venv/bin/python" -m compileall -q -j 0 "$@" >/dev/null 2>&1 || true
}

packages() {
    version="$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
    case "$version" in
    3.11 | 3.12) ;;
    *)
        echo "minuted needs Python 3.11 or 3.12; $python is $version" >&2
        exit 2
        ;;
    esac
    "$python" -m venv --clear --without-pip "$folder/.venv"
    # An entry of the lock is its first line and the indented ones below it.
    awk '
        FNR == NR { if ($1 !~ /^#/ && NF) leave_out[$1] = 1; next }
        /^[A-Za-z0-9]/ { name = $1; sub(/==.*/, "", name); keep = !(name in leave_out) }
        keep
    ' "$here/not-in-image.txt" "$checkout/locks/default.txt" >"$folder/requirements.txt"
    install_into "$folder" --require-hashes --only-binary :all: -r "$folder/requirements.txt"
    compile "$folder/.venv/lib"
}

program() {
    for part in contracts kernels models operators devices flows; do
        if [ -d "$checkout/$part" ]; then
            rm -rf "${folder:?}/$part"
            cp -R "$checkout/$part" "$folder/"
        fi
    done
    rm -rf "$folder/devices/rooms" # the room simulator is a tool for developers, with packages of its own
    mkdir -p "$folder/deploy"
    cp "$checkout/deploy/flow" "$folder/deploy/"
    cp "$checkout/pyproject.toml" "$checkout/LICENSE" "$folder/"
    find "$folder" -name .venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
    # Editable: programs, rule files and the sample meeting stay where they were copied to.
    install_into "$folder" --no-build-isolation -e "$folder"
    compile "$folder/contracts" "$folder/models" "$folder/operators" "$folder/devices" "$folder/flows"
}

[ $# = 2 ] || usage
mkdir -p "$2"
folder="$(cd "$2" && pwd)"
case "$1" in
packages) packages ;;
program) program ;;
*) usage ;;
esac

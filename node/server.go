package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	etcdversion "go.etcd.io/etcd/api/v3/version"

	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/release"
)

// Version is a version of etcd; the zero value is an unknown one.
type Version struct{ Major, Minor, Patch int }

// String returns the version as etcd writes it.
func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Known reports whether the version is known.
func (v Version) Known() bool { return v.Major > 0 }

// Line returns the version without its patch release, such as "3.6".
func (v Version) Line() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Release returns the version for the table of releases; unknown if it is not etcd 3.
func (v Version) Release() release.Version {
	if v.Major != 3 {
		return release.Version{}
	}
	return release.Exact(v.Minor, v.Patch)
}

// has reports whether a server of this version follows a rule.
func (v Version) has(r *release.Rule) bool { return v.Release().Has(r).Certain() }

// AtLeast reports whether v is w or newer.
func (v Version) AtLeast(w Version) bool {
	return slices.Compare([]int{v.Major, v.Minor, v.Patch}, []int{w.Major, w.Minor, w.Patch}) >= 0
}

var versionText = regexp.MustCompile(`^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?$`)

// ParseVersion reads 3.5.35, v3.5.0-rc.1 or 3.6; an empty text is the unknown version.
func ParseVersion(s string) (Version, error) {
	if s == "" {
		return Version{}, nil
	}
	m := versionText.FindStringSubmatch(s)
	if m == nil {
		return Version{}, fmt.Errorf("%q is not a version", s)
	}
	var v Version
	for i, to := range []*int{&v.Major, &v.Minor, &v.Patch} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return Version{}, fmt.Errorf("%q is not a version: %w", s, err)
		}
		*to = n
	}
	return v, nil
}

// Origin says where a server comes from.
type Origin string

// The origins of servers.
const (
	// FromProgram is the server that is linked into this program.
	FromProgram Origin = "bundled"
	// FromEmbedded is the server of another minor version, built into this program or in its folder.
	FromEmbedded Origin = "embedded"
	// FromOperator is a binary given by the operator.
	FromOperator Origin = "external"
)

// Server is an etcd server program that can be run.
type Server struct {
	Path    string   // the program
	Args    []string // arguments before etcd's own flags
	Version Version
	Origin  Origin
}

// String names the server: its version and where it comes from.
func (s Server) String() string {
	if s.Origin == FromOperator {
		return fmt.Sprintf("etcd %s (%s)", s.Version, s.Path)
	}
	return fmt.Sprintf("etcd %s (%s)", s.Version, s.Origin)
}

// answersNames reports whether the server resolves host names through the sandbox. Only the servers built into this
// program do.
func (s Server) answersNames() bool {
	return s.Path == self() && len(s.Args) > 0
}

// Bundled returns the server that is linked into this program.
func Bundled() Server {
	v, _ := ParseVersion(etcdversion.Version)
	return Server{Path: self(), Args: []string{hiddenServer}, Version: v, Origin: FromProgram}
}

// self returns the path of the running program. /proc/self/exe also works if the file was replaced meanwhile.
func self() string {
	if p, err := os.Executable(); err == nil {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return "/proc/self/exe"
}

// askTimeout bounds how long a program may take to print its version.
const askTimeout = 20 * time.Second

var versionLine = regexp.MustCompile(`(?m)^etcd Version:\s*(\S+)`)

// External asks the program at path for its version, with an empty environment. It refuses a program that is not an
// etcd server.
func External(ctx context.Context, path string) (Server, error) {
	refuse := func(format string, args ...any) (Server, error) {
		return Server{}, &refusal.Error{What: path, Reason: fmt.Sprintf(format, args...),
			Hint: "name the etcd server program (not etcdctl or etcdutl)"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Server{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, abs, "--version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if e := unsupportedArch(); e != "" {
		cmd.Env = append(cmd.Env, e)
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil && errors.Is(ctx.Err(), context.Canceled) {
		return Server{}, ctx.Err()
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		what := firstLine(string(out))
		if err != nil {
			what = strings.TrimSpace(err.Error() + " " + what)
		}
		return refuse("--version does not answer like an etcd server (%s)", what)
	}
	v, err := ParseVersion(string(m[1]))
	if err != nil {
		return refuse("%v", err)
	}
	if v.Major != 3 || v.Release().TooOld() {
		return refuse("etcd %s is not supported", v)
	}
	return Server{Path: abs, Version: v, Origin: FromOperator}, nil
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if len(s) > 200 {
		s = s[:200]
	}
	return s
}

// Embedded returns the server of version 3.minor, if it is built into this program or in its folder.
func Embedded(minor int) (Server, bool) { return embedded(minor) }

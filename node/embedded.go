package node

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/etcd-medic/etcd-medic/node/internal/lines"
)

// hiddenLine is the hidden command that becomes a built-in server of another etcd version.
const hiddenLine = "__etcd-line"

// embedded finds the server of a minor version that is not linked into this program: built in, else a program
// etcd-3.MINOR next to it.
func embedded(minor int) (Server, bool) {
	for _, text := range lines.Versions() {
		if v, err := ParseVersion(text); err == nil && v.Minor == minor {
			return Server{Path: self(), Args: []string{hiddenLine, text}, Version: v, Origin: FromEmbedded}, true
		}
	}
	return nextToProgram(minor)
}

// BuiltIn returns the versions of the etcd servers inside this program, oldest first: the linked one, and those that
// the build tag "lines" embeds.
func BuiltIn() []Version {
	out := []Version{Bundled().Version}
	for _, text := range lines.Versions() {
		if v, err := ParseVersion(text); err == nil {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b Version) int {
		return cmp.Or(cmp.Compare(a.Major, b.Major), cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Patch, b.Patch))
	})
	return out
}

// NotBuiltIn returns the minor versions whose servers a full build contains and this one lacks, as one from `go install`
// does, oldest first. A server next to the program is not built in.
func NotBuiltIn() (out []string) {
	for _, line := range lines.Full {
		if !slices.ContainsFunc(BuiltIn(), func(v Version) bool { return v.Line() == line }) {
			out = append(out, line)
		}
	}
	return out
}

// nextToProgram finds etcd-3.MINOR in the folder of this program. It asks the program for its version once.
func nextToProgram(minor int) (Server, bool) {
	path := filepath.Join(filepath.Dir(self()), fmt.Sprintf("etcd-3.%d", minor))
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return Server{}, false
	}
	besideMu.Lock()
	defer besideMu.Unlock()
	s, ok := besideKnown[path]
	if !ok {
		var err error
		if s, err = External(context.Background(), path); err == nil && s.Version.Minor == minor {
			s.Origin = FromEmbedded
		} else {
			s = Server{}
		}
		besideKnown[path] = s
	}
	return s, s.Path != ""
}

var (
	besideMu    sync.Mutex
	besideKnown = map[string]Server{}
)

// runHiddenLine becomes a built-in server: it unpacks the program and replaces this process with it, keeping the
// process id and the parent. It returns only if that fails.
func runHiddenLine(args []string) (handled bool, exitCode int) {
	if args[0] != hiddenLine {
		return false, 0
	}
	err := errors.New("no version given")
	if len(args) > 1 && slices.Contains(lines.Versions(), args[1]) {
		err = errors.Join(becomeMemory(args[1], args[2:]), becomeFile(args[1], args[2:]))
	}
	// stderr is the member's log, where StartError finds this line.
	_, _ = fmt.Fprintf(os.NewFile(2, "stderr"), "panic: the built-in etcd server cannot be run: %v\n", err)
	return true, 1
}

func unpack(version string, f *os.File) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := lines.Unpack(version, w); err != nil {
		return err
	}
	return w.Flush()
}

// becomeFile runs the server from a file in the folder for temporary files, which belongs to the sandbox.
func becomeFile(version string, args []string) error {
	f, err := os.CreateTemp("", "etcd-"+version+"-")
	if err != nil {
		return err
	}
	if err := errors.Join(unpack(version, f), f.Chmod(0o700), f.Close()); err != nil {
		return err
	}
	return become(f.Name(), args)
}

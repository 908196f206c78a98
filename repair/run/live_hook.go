package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/etcd-medic/etcd-medic/internal/hooks"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// HooksLogPath is the file with the output of all hooks, next to the plan. They print to a file and not to a pipe, so
// that a server that a hook started can write after the tool has ended.
func HooksLogPath(plan string) string { return plan + ".hooks.log" }

// hookGrace is how long a hook may take to end after the signal.
const hookGrace = 5 * time.Second

// runHook runs a shell command and waits for it, no longer than HookTimeout.
func (f *liveHost) runHook(ctx context.Context, m *plan.Member, what, hook, initial string) (err error) {
	if name := m.ServerName(); strings.HasPrefix(name, "-") || shell.OneLine(name) != name {
		return fmt.Errorf("hook %s is not run for member %s: a program takes its name %q for a flag, or shows it as "+
			"another; do this step by hand", what, m.ID, name)
	}
	log, err := os.OpenFile(HooksLogPath(f.plan), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if _, err := fmt.Fprintf(log, "# --- %s hook %s of %s\n", time.Now().UTC().Format(time.RFC3339), what,
		shell.Comment(m.Name)); err != nil {
		return err
	}
	st, err := log.Stat()
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, f.o.HookTimeout)
	defer cancel()
	cmd := exec.CommandContext(timed, "sh", "-c", hook)
	cmd.Env = append(hooks.Environ(), hookEnv(f, m, what, initial)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, hookGrace
	hooks.OwnGroup(cmd)
	failed := cmd.Run()
	said := "It printed nothing"
	if text := strings.TrimSpace(f.printed(log, st.Size())); text != "" {
		said = fmt.Sprintf("It said: %q", text)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case timed.Err() != nil:
		return fmt.Errorf("hook %s of %s was still at work after %v and was ended; it must return once the member is "+
			"%s. %s", what, m.Name, f.o.HookTimeout, done[what], said)
	case failed != nil:
		return fmt.Errorf("hook %s of %s: %w. %s", what, m.Name, failed, said)
	}
	return nil
}

// done says what a host step has achieved.
var done = map[string]string{"stop": "stopped", "wipe": "without its old data dir",
	"start": "started, and leave it running"}

// printed copies what the hook wrote to Output and returns the end of it.
func (f *liveHost) printed(log *os.File, from int64) string {
	tail := lastBytes{}
	// for people; the log has the whole output
	_, _ = io.Copy(io.MultiWriter(&tail, f.o.Output), io.NewSectionReader(log, from, 1<<40))
	return string(tail.b)
}

// hookEnv is the environment of a hook.
func hookEnv(f *liveHost, m *plan.Member, what, initial string) []string {
	state := ""
	if initial != "" {
		state = "existing"
	}
	return []string{
		"ETCD_MEDIC_ACTION=" + what,
		"ETCD_MEDIC_MEMBER_NAME=" + m.ServerName(),
		"ETCD_MEDIC_MEMBER_ID=" + hexID(f.r.idOf(m)),
		"ETCD_MEDIC_OLD_MEMBER_ID=" + m.ID.String(),
		"ETCD_MEDIC_PEER_URLS=" + strings.Join(m.PeerURLs, ","),
		"ETCD_MEDIC_CLIENT_URLS=" + strings.Join(m.ClientURLs, ","),
		"ETCD_MEDIC_DATA_DIR=" + f.dataDir(m),
		"ETCD_MEDIC_SET_ASIDE=" + AsidePath(f.plan, m),
		"ETCD_MEDIC_INITIAL_CLUSTER=" + initial,
		"ETCD_MEDIC_INITIAL_CLUSTER_STATE=" + state,
		"ETCD_MEDIC_PLAN=" + filepath.Base(f.plan),
	}
}

// lastBytes keeps the end of what a hook printed.
type lastBytes struct{ b []byte }

// Write keeps the last kilobyte.
func (l *lastBytes) Write(b []byte) (int, error) {
	l.b = append(l.b, b...)
	l.b = l.b[max(0, len(l.b)-1024):]
	return len(b), nil
}

package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
	"github.com/etcd-medic/etcd-medic/repair/plan"
	"github.com/etcd-medic/etcd-medic/shell"
)

// doBackup streams the best member's snapshot to a new file and checks the digest at its end.
func doBackup(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	return r.snapshot(ctx, s, r.best(), r.backup)
}

// savePath is the file for the snapshot of a member that is removed: the name of the best member's file with the
// member's name in it.
func savePath(backup string, m *plan.Member) string {
	ext := filepath.Ext(backup)
	return strings.TrimSuffix(backup, ext) + "." + shell.FileName(m.ServerName()) + ext
}

// doSave saves the content of a member that is about to be removed, and looks for writes that only this member has
// accepted since the plan was made.
func doSave(ctx context.Context, r *runner, s *plan.Step) (string, error) {
	m := r.of(s)
	if r.sandbox {
		return "not needed: the source stays as it is", nil
	}
	down := func(why error) string {
		return r.silence(m, why) + ": nothing is saved, its data dir is set aside whole"
	}
	if why := r.host.serves(ctx, m); why != nil {
		return down(why), ctx.Err()
	}
	detail, err := r.saved(ctx, s, m)
	if err != nil {
		return "", err
	}
	if why := r.host.serves(ctx, m); why != nil {
		return down(why) + " (" + detail + ")", ctx.Err()
	}
	d, err := r.drifts.drift(ctx, m)
	if err != nil {
		return "", err
	}
	r.out.Drift = append(r.out.Drift, *d)
	if d.Unlisted > 0 && !r.live.AcceptLost {
		return "", r.drifts.unaccepted(d)
	}
	return detail + "; " + r.drifts.tell(d), nil
}

// saved takes the snapshot of a member that is removed. Reading a whole damaged database may end the server, so the
// others must be a majority, as for a stop.
func (r *runner) saved(ctx context.Context, s *plan.Step, m *plan.Member) (detail string, err error) {
	if r.live.SkipSaves {
		return "no snapshot is taken, as was asked for", nil
	}
	if r.guarded {
		now := r.rule(ctx, theOthers, plan.StepSave, m)
		switch noneMissing := len(now.missing) == 0 && !now.allowed; {
		case noneMissing && !m.Startable:
			return "no snapshot is taken: reading a damaged database may end the server, and " + now.text +
				"; its data dir is set aside whole", nil
		case noneMissing: // two voters: waiting does not help
		default:
			if err := r.quorum(ctx, theOthers, plan.StepSave, m); err != nil {
				return "", err
			}
		}
	}
	detail, err = r.snapshot(ctx, s, m, savePath(r.backup, m))
	switch {
	case err == nil || ctx.Err() != nil:
		return detail, err
	case !r.running(ctx, m), !m.Startable:
		return fmt.Sprintf("no snapshot could be taken: %v; its data dir is set aside whole", err), nil
	}
	return "", err
}

// snapshot saves the content of a member. The file gets its name when it is complete, and only a file of this run
// counts as done.
func (r *runner) snapshot(ctx context.Context, s *plan.Step, m *plan.Member, path string) (string, error) {
	if st, err := os.Lstat(path); err == nil {
		if r.j.value("file:"+filepath.Base(path)) == "" {
			return "", fmt.Errorf("%s exists and is not of this run: nothing is overwritten; move it away", path)
		}
		return fmt.Sprintf("%s, %s, is there already", filepath.Base(path), plural.Size(st.Size())), nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	c, _, err := r.host.client(m)
	if err != nil {
		return "", err
	}
	b, err := datadir.Begin(path)
	if err != nil {
		return "", err
	}
	defer b.Abandon()
	partial := filepath.Join(b.Path, "snapshot")
	call, cancel := context.WithTimeout(ctx, r.limits.transfer)
	defer cancel()
	size, err := saveSnapshot(call, c, partial)
	if err != nil {
		if call.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("the snapshot of %s: not within %v: %w", m.Name, r.limits.transfer, err)
		}
		return "", err
	}
	if err := r.note(s.ID, "file:"+filepath.Base(path), path); err != nil {
		return "", err
	}
	if err := b.CommitFile("snapshot"); err != nil {
		return "", err
	}
	r.out.Bytes = max(r.out.Bytes, size)
	return fmt.Sprintf("%s, %s, its sha256 trailer fits", filepath.Base(path), plural.Size(size)), nil
}

func saveSnapshot(ctx context.Context, c *clientv3.Client, path string) (size int64, err error) {
	in, err := c.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // only read
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := &tail{h: sha256.New()}
	_, work := progress.Begin(ctx, "receiving a snapshot", 0)
	defer work.End()
	if size, err = io.Copy(io.MultiWriter(f, t), work.Reader(in)); err != nil {
		return size, err
	}
	if !t.fits() {
		return size, fmt.Errorf("the snapshot of %s came without a sha256 that fits it: it was cut short",
			plural.Size(size))
	}
	return size, f.Sync()
}

// tail hashes everything but the last 32 bytes, which it keeps.
type tail struct {
	h interface {
		io.Writer
		Sum([]byte) []byte
	}
	last []byte
}

// Write hashes what is certainly not the trailer.
func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	if n := len(t.last) - sha256.Size; n > 0 {
		_, _ = t.h.Write(t.last[:n]) // a hash never fails to write
		t.last = append(t.last[:0], t.last[n:]...)
	}
	return len(b), nil
}

func (t *tail) fits() bool {
	return len(t.last) == sha256.Size && string(t.h.Sum(nil)) == string(t.last)
}

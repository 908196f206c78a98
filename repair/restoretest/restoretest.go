// Package restoretest proves a backup by a test restore: into a scratch data dir, with a server of the right version in
// a sandbox, and with everything read back.
//
// The data dir is what etcdutl snapshot restore would write for one member: the database with a new member list, a log
// with that member's ConfChange, a snapshot record and a .snap file at index 1 of term 1. Keys, revisions, leases,
// users and alarms are unchanged. The server then returns every key at the backup's revision, and each answer is
// compared with the record in the file.
package restoretest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/backup"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/internal/progress"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Options tune a drill.
type Options struct {
	// Dir is the folder for scratch, which is removed at the end; "" is the system's folder for temporary files.
	Dir string
	// EtcdBinary is the operator's own server; "" means one that the program contains.
	EtcdBinary string
	Isolation  node.Isolation
	// Timeout bounds the whole drill; 0 means 10 minutes.
	Timeout time.Duration
	// Progress, if set, is called with the current action.
	Progress func(what string)
	// MaxMarks bounds the keys in memory at a time, at about 70 bytes each; more keys need more passes. 0 means
	// 2,000,000.
	MaxMarks int64
}

// maxDifferences bounds the list.
const maxDifferences = 50

func (d *drill) differ(x backup.Difference) {
	if len(d.res.Differences) < maxDifferences {
		d.res.Differences = append(d.res.Differences, x)
	} else {
		d.res.More++
	}
}

// Run performs a drill of an open backup and adds its result to the report. It returns an error only if ctx ends: what
// prevented the drill is its result.
func Run(ctx context.Context, m *evidence.Member, r *compare.Report, o Options) (*backup.Drill, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	res := &backup.Drill{Steps: []backup.Step{}, Differences: []backup.Difference{}}
	begin := time.Now()
	dctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	d := &drill{m: m, res: res, o: o}
	err := d.inScratch(dctx)
	res.Seconds = time.Since(begin).Seconds()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && d.failure == nil {
		d.failure = err
	}
	d.timedOut = dctx.Err() != nil
	d.judge(r)
	return res, nil
}

// drill is one drill in progress.
type drill struct {
	m   *evidence.Member
	res *backup.Drill
	o   Options
	dir string
	box *node.Sandbox
	mem *node.Member
	// failure is the error that ended the drill, of a step or of its setup.
	failure error
	// timedOut is set if the drill ran out of time.
	timedOut bool
	// noServer is the error with which the server ended on an empty data dir as well, nil if it starts there or if that
	// was not tried.
	noServer error
}

// inScratch runs the drill in a scratch folder and removes it.
func (d *drill) inScratch(ctx context.Context) error {
	dir, err := scratch.Dir(d.o.Dir, "etcd-medic-drill-")
	if err != nil {
		return err
	}
	// The server runs in another working folder, where a relative path would mean another folder, and an empty data dir
	// would also start.
	if d.dir, err = filepath.Abs(dir); err != nil {
		return errors.Join(err, scratch.Remove(dir))
	}
	err = d.run(ctx)
	return errors.Join(err, scratch.Remove(d.dir))
}

// errStop ends a drill whose last step failed; the step has the reason.
var errStop = errors.New("the drill stopped")

// step runs one step, times it and records its result. It returns errStop if the rest is useless without it.
func (d *drill) step(name string, run func() (says string, err error)) error {
	d.o.Progress("drill: " + name)
	begin := time.Now()
	says, err := run()
	s := backup.Step{Step: name, OK: err == nil, Seconds: time.Since(begin).Seconds(), Says: says}
	if err != nil {
		s.Says, d.failure = err.Error(), err
	}
	d.res.Steps = append(d.res.Steps, s)
	if err != nil {
		return errStop
	}
	return nil
}

func (d *drill) run(ctx context.Context) error {
	if !d.m.HasDB() || d.m.DB.KV == nil || d.m.DB.KVDamaged {
		return errors.New("the backup cannot be read in full")
	}
	server, err := node.Choose(ctx, need(d.m), d.o.EtcdBinary)
	if err != nil {
		return d.refused(err)
	}
	d.res.Version, d.res.Server = server.Version.String(), string(server.Origin)
	data := filepath.Join(d.dir, "data")
	if err := d.step("restore", func() (string, error) { return restore(ctx, d.m, data) }); err != nil {
		return nil
	}
	err = d.serve(ctx, server, data)
	if errors.Is(err, errStop) {
		err = nil
	}
	return err
}

// refused records a refusal as a fact and returns other errors.
func (d *drill) refused(err error) error {
	var no *refusal.Error
	if !errors.As(err, &no) {
		return err
	}
	d.res.Refused = no.Error()
	if no.Hint != "" {
		d.res.Refused += " (" + no.Hint + ")"
	}
	return nil
}

// serve starts the server on the data dir, runs all checks and stops it.
func (d *drill) serve(ctx context.Context, server node.Server, data string) (err error) {
	d.box, err = node.New(ctx, node.Options{Dir: filepath.Join(d.dir, "sandbox"), Server: server,
		Isolation: d.o.Isolation, Auth: true, UnsafeNoFsync: true,
		KnownPeers: []string{peerURL}})
	if err != nil {
		return d.refused(err)
	}
	defer func() {
		d.lastWords(ctx)
		d.res.Sandbox = d.box.Proof().Lines()
		err = errors.Join(err, d.box.Close())
	}()
	if err := d.step("start", func() (string, error) { return d.start(ctx, data) }); err != nil {
		if d.lastWords(ctx); len(d.res.Fatal) > 0 {
			d.startEmpty(ctx)
		}
		return err
	}
	d.res.Started = true
	if err := d.readBack(ctx); err != nil {
		return err
	}
	if err := d.step("write and read", func() (string, error) { return d.write(ctx) }); err != nil {
		return err
	}
	return d.step(stepStop, func() (string, error) { return "", d.mem.Stop(ctx) })
}

func (d *drill) start(ctx context.Context, data string) (string, error) {
	var err error
	if d.mem, err = d.server(ctx, memberName, data); err != nil {
		return "", err
	}
	return fmt.Sprintf("etcd %s answers", d.res.Version), nil
}

// server starts the only member of a cluster on a data dir and waits until it answers. The member is nil if nothing was
// started.
func (d *drill) server(ctx context.Context, name, data string) (*node.Member, error) {
	m, err := d.box.Start(ctx, node.MemberConfig{Name: name, DataDir: data, PeerURLs: []string{peerURL},
		ClientURLs:     []string{clientURL},
		InitialCluster: name + "=" + peerURL, Token: token, QuotaBytes: max(8<<30, 2*d.m.DB.Handle.Size())})
	if err != nil {
		return nil, err
	}
	wait := progress.Wait(ctx, "waiting for etcd "+d.res.Version)
	err = m.Ready(ctx)
	wait.End()
	return m, err
}

// startEmpty starts the server that ended on the restored data dir on an empty one. If it ends there too, this machine
// is to blame, such as for a limit of open files, and not the backup.
func (d *drill) startEmpty(ctx context.Context) {
	begin := time.Now()
	m, err := d.server(ctx, "new-member", filepath.Join(d.dir, "empty"))
	if ctx.Err() != nil {
		return
	}
	s := backup.Step{Step: "start on an empty data dir", OK: err == nil, Seconds: time.Since(begin).Seconds()}
	if err != nil {
		s.Says, d.noServer = err.Error(), err
	} else {
		s.Says = fmt.Sprintf("etcd %s answers there", d.res.Version)
		_ = m.Stop(ctx) // the sandbox kills what is left
	}
	d.res.Steps = append(d.res.Steps, s)
}

// need returns what a server must support to open the backup.
func need(m *evidence.Member) node.Need {
	n := node.Need{}
	if v, err := node.ParseVersion(m.DB.Meta.StorageVersion); err == nil {
		n.Storage = v
	}
	if v, err := node.ParseVersion(m.DB.Cluster.Version); err == nil {
		n.Cluster = v
	}
	return n
}

// restore writes the data dir of a one-member cluster from the backup.
func restore(ctx context.Context, m *evidence.Member, data string) (string, error) {
	id := apply.NewMemberID([]string{peerURL}, token)
	self := datadir.Member{ID: id, Name: memberName, PeerURLs: []string{peerURL}}
	change, err := self.JSON()
	if err != nil {
		return "", err
	}
	minor, _ := evidence.MinorOf(m.DB.Cluster.Version)
	edits := []datadir.Edit{datadir.SetMembers([]datadir.Member{self}, nil), datadir.SetConsistentIndex(1)}
	if m.DB.Meta.Term != nil {
		edits = append(edits, datadir.SetTerm(1))
	}
	if m.DB.Meta.ConfState != nil {
		edits = append(edits, datadir.SetConfState([]uint64{id}, nil))
	}
	w, err := datadir.Write(ctx, data, datadir.Dir{MemberID: id, ClusterID: apply.NewClusterID([]uint64{id}), Term: 1,
		Index: 1, Vote: id,
		Voters: []uint64{id}, Members: []datadir.Member{self}, ClusterVersion: m.DB.Cluster.Version, Minor: minor,
		Entries: []datadir.Entry{{Type: entryConfChange, Term: 1, Index: 1, Data: datadir.ConfChange(0, id, change)}}},
		datadir.CopyOf(m.Source.Parts().DB, edits...))
	if err != nil {
		return "", err
	}
	return plural.Size(w.Bytes) + " written", nil
}

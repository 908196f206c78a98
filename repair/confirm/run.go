package confirm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/internal/disk"
	"github.com/etcd-medic/etcd-medic/internal/scratch"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/refusal"
	"github.com/etcd-medic/etcd-medic/repair/copies"
)

// Options tune Run.
type Options struct {
	// Dir is the folder for scratch, which is removed at the end; "" is the system's folder for temporary files.
	Dir string
	// EtcdBinary is the operator's own server; "" means one that the program contains.
	EtcdBinary string
	Isolation  node.Isolation
	// Timeout bounds the whole run; 0 means 10 minutes.
	Timeout time.Duration
	// Values shows values of keys in differences.
	Values bool
	// Progress, if set, is called with the current action.
	Progress func(what string)
	// MaxEntries bounds the entries that the server gets at once, since it keeps them in memory; 0 means 200,000.
	MaxEntries int
	// Room is disk.Room, or a test's stand-in.
	Room func(dir string) (free int64, ok bool)
}

// Run asks a real server about all members. The result says what could not be done. It returns an error only if ctx
// ends or the scratch folder fails.
func Run(ctx context.Context, members []*evidence.Member, rp *replay.Result, o Options) (*compare.Confirmation, error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
	}
	if o.Room == nil {
		o.Room = disk.Room
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 200_000
	}
	begin := time.Now()
	res := &compare.Confirmation{Members: []compare.ConfirmedMember{}}
	for i, m := range members {
		res.Members = append(res.Members, compare.ConfirmedMember{Member: m.Label(), Status: compare.NotPossible,
			Replay: replaySays(rp, i)})
	}
	r := &run{o: o, res: res}
	tctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err := r.all(tctx, members, rp)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = &errServer{fmt.Sprintf("it was not done within %s", o.Timeout)}
	}
	var server *errServer
	var no *refusal.Error
	switch {
	case errors.As(err, &server):
		r.impossible(server.reason)
	case errors.As(err, &no):
		r.impossible(no.Error())
	case err != nil:
		return nil, err
	}
	res.Seconds = time.Since(begin).Seconds()
	return res, nil
}

// run is one second opinion in progress.
type run struct {
	o    Options
	res  *compare.Confirmation
	plan *Plan
	x    *executor
	// seen are the comparisons by source; nil if not made.
	seen []*contents
	revs map[uint64]int64
	// late are the small buckets of sources up to 3.4 at Target.Late.
	late map[int]*smallState
}

// impossible sets the reason for every member that has no status yet.
func (r *run) impossible(why string) {
	judged := false
	for i := range r.res.Members {
		m := &r.res.Members[i]
		if m.Reason == "" {
			m.Reason = why
		} else if m.Status != compare.NotPossible {
			judged = true
		}
	}
	if !judged {
		r.res.Reason = why
	}
}

func (r *run) all(ctx context.Context, members []*evidence.Member, rp *replay.Result) (err error) {
	if rp == nil {
		r.impossible("the sources belong to different clusters")
		return nil
	}
	r.o.Progress("confirm: looking for a base")
	if r.plan, err = NewPlan(ctx, members); err != nil {
		return err
	}
	p := r.plan
	r.res.Notes = p.Notes
	if p.Reason != "" {
		r.impossible(p.Reason)
		return nil
	}
	defer p.Base.close()
	for i := range p.Targets {
		r.res.Members[i].Reason = p.Targets[i].Reason
	}
	b := p.Base
	r.res.Base = &compare.ConfirmBase{Kind: string(b.Kind), Source: b.Source, Index: b.Index, Revision: b.Revision}
	server, err := node.Choose(ctx, p.Need, r.o.EtcdBinary)
	if err != nil {
		return err
	}
	r.res.Server, r.res.Origin = server.Version.String(), string(server.Origin)
	if p.Minor > 0 && server.Version.Minor != p.Minor {
		r.res.Notes = append(r.res.Notes, fmt.Sprintf("the sources are of etcd 3.%d; etcd %s is the next release at "+
			"hand that executes their log", p.Minor, server.Version))
	}
	return r.execute(ctx, server)
}

// execute creates the scratch folder and the sandbox, and removes both at the end.
func (r *run) execute(ctx context.Context, server node.Server) (err error) {
	dir, err := scratch.Dir(r.o.Dir, "etcd-medic-confirm-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, scratch.Remove(dir)) }()
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	size := r.size()
	if err := copies.Enough(dir, size, r.o.Room, copies.OtherScratch); err != nil {
		return err
	}
	box, err := node.New(ctx, node.Options{Dir: filepath.Join(dir, "sandbox"), Server: server, Isolation: r.o.Isolation,
		UnsafeNoFsync: true, KnownPeers: r.plan.peers()})
	if err != nil {
		return err
	}
	defer func() {
		r.res.Sandbox = box.Proof().Lines()
		err = errors.Join(err, box.Close())
	}()
	b := r.plan.Base
	feed := newFeed(ctx, r.plan, server.Version.Minor, r.o.MaxEntries)
	defer feed.stop()
	r.x = &executor{p: r.plan, box: box, server: server, feed: feed, dir: dir, quota: max(8<<30, 4*size),
		say: r.o.Progress,
		at: state{db: b.Path, index: b.Index, term: b.Term, members: b.Members, removed: b.Removed,
			clusterVersion: b.ClusterVersion}}
	return r.stops(ctx)
}

// walRoom is the space that a server preallocates for its log.
const walRoom = 128 << 20

// size returns the scratch space of the largest data dir and its copy: the base, the growth by the log, and the log.
func (r *run) size() int64 {
	var db int64
	if r.plan.Base.db != nil {
		db = r.plan.Base.db.Size()
	}
	for i := range r.plan.Targets {
		if m := r.plan.Targets[i].Member; m.HasDB() {
			db = max(db, m.DB.Handle.Size())
		}
	}
	return 2*db + 3*r.plan.sv.bytes + walRoom
}

// stops executes the log from stop to stop and compares at each. If the server fails, earlier comparisons are kept.
func (r *run) stops(ctx context.Context) error {
	r.seen, r.revs, r.late = make([]*contents, len(r.plan.Targets)), map[uint64]int64{}, map[int]*smallState{}
	var failed error
	for _, stop := range r.plan.Stops {
		if failed = r.x.to(ctx, stop); failed != nil {
			break
		}
		if err := r.at(ctx, stop); err != nil {
			return err
		}
	}
	var server *errServer
	if failed != nil && !errors.As(failed, &server) || len(r.revs) == 0 {
		return failed
	}
	return errors.Join(r.judge(ctx), failed)
}

// at compares every source with this index.
func (r *run) at(ctx context.Context, stop uint64) error {
	db, err := dumpdb.Open(r.x.at.db)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	if r.revs[stop], err = db.CurrentRev(); err != nil {
		return err
	}
	small, err := readSmall(db)
	if err != nil {
		return err
	}
	for i := range r.plan.Targets {
		t := &r.plan.Targets[i]
		if t.Reason != "" {
			continue
		}
		if t.Late == stop {
			r.lateSmall(i, small)
		}
		if t.Index != stop {
			continue
		}
		r.o.Progress(fmt.Sprintf("confirm: comparing %s at entry %d", t.Member.Label(), stop))
		if err := r.compare(ctx, i, db, small); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			t.Reason = "its database and the server's cannot be compared: " + err.Error()
			r.res.Members[i].Reason = t.Reason
		}
	}
	return nil
}

func (r *run) rules() smallRules { return smallRules{minor: r.plan.Minor, plain: r.plan.sv.plain} }

// compare compares one source with the server's database at its index. If the source may contain more than its index
// says, the small buckets are compared again at the last possible index.
func (r *run) compare(ctx context.Context, i int, db *dumpdb.DB, small *smallState) error {
	t := &r.plan.Targets[i]
	own := smallOf(t.Member)
	c := &contents{values: r.o.Values, key: t.Member.Redact,
		compact: max(own.meta.CompactRev(), small.meta.CompactRev())}
	if err := c.keys(ctx, t.Member.DB.Handle, db); err != nil {
		return err
	}
	if a, b := own.meta.CompactRev(), small.meta.CompactRev(); a != b && t.Late == t.Index {
		c.row("meta", "compact revision", fmt.Sprint(a), fmt.Sprint(b))
	}
	r.seen[i] = c
	if t.Late == t.Index {
		c.compareSmall(own, small, r.rules())
		return nil
	}
	r.late[i] = small
	return nil
}

// lateSmall compares the small buckets of a source whose consistent index lags with the states at both ends of its
// range.
func (r *run) lateSmall(i int, late *smallState) {
	t := &r.plan.Targets[i]
	c, early := r.seen[i], r.late[i]
	if c == nil || early == nil {
		return
	}
	own := smallOf(t.Member)
	one, two := &contents{key: t.Member.Redact}, &contents{key: t.Member.Redact}
	one.compareSmall(own, early, r.rules())
	two.compareSmall(own, late, r.rules())
	for bucket, n := range two.small {
		switch {
		case one.small[bucket] == 0:
		case r.plan.sv.touches(bucket, t.Index, t.Late) > 1:
			c.leftOut = append(c.leftOut, fmt.Sprintf("%s: %d rows differ; several entries from %d to %d change it, "+
				"and which of them the database holds is not known", bucket, n, t.Index+1, t.Late))
		default:
			for _, d := range two.list {
				if d.Bucket == bucket {
					c.row(bucket, string(d.Key), d.Observed, d.Expected)
				}
			}
		}
	}
	c.leftOut = append(c.leftOut, two.leftOut...)
}

// judge weighs the differences once the entries that releases execute differently are known.
func (r *run) judge(ctx context.Context) error {
	r.o.Progress("confirm: looking for entries that releases execute differently")
	db, err := dumpdb.Open(r.x.at.db)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // only read
	d, err := findDoubts(ctx, r.plan, r.x.server.Version.Minor, valuesOf(db))
	if err != nil {
		return err
	}
	for i := range r.plan.Targets {
		t := &r.plan.Targets[i]
		if r.seen[i] == nil || t.Reason != "" {
			continue
		}
		v := &verdict{target: t, base: r.plan.Base, minor: r.plan.Minor, server: r.res.Server, doubts: d,
			content: r.seen[i], revision: r.revs[t.Index], modelled: d.revAt[t.Index]}
		says := r.res.Members[i].Replay
		r.res.Members[i] = v.judge()
		r.res.Members[i].Replay = says
	}
	for _, stop := range r.plan.Stops {
		if have, ok := r.revs[stop]; ok && have != d.revAt[stop] {
			r.res.Notes = append(r.res.Notes,
				fmt.Sprintf("at entry %d the server is at revision %d and the rules of this program come to %d", stop,
					have, d.revAt[stop]))
			break
		}
	}
	return nil
}

// valuesOf returns a function that reads values of records from a database.
func valuesOf(db *dumpdb.DB) func(string, dumpdb.Rev) ([]byte, bool) {
	return func(key string, at dumpdb.Rev) ([]byte, bool) {
		for r, err := range db.RevisionsBetween(at, dumpdb.Rev{Main: at.Main, Sub: at.Sub + 1}) {
			if err != nil || string(r.KV.Key) != key {
				return nil, false
			}
			return append([]byte(nil), r.KV.Value...), true
		}
		return nil, false
	}
}

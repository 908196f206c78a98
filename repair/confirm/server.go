package confirm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// executor lets a server execute parts of the log, one after the other.
type executor struct {
	p      *Plan
	box    *node.Sandbox
	server node.Server
	feed   *feed
	dir    string
	quota  int64
	say    func(string)
	// at is the state reached so far.
	at state
	n  int
}

// state is a database and its index in the log.
type state struct {
	// db is "" before the first execution on a new cluster.
	db             string
	index, term    uint64
	members        []datadir.Member
	removed        []uint64
	clusterVersion string
}

// errServer says why the server did not execute the log.
type errServer struct{ reason string }

// Error is the reason.
func (e *errServer) Error() string { return e.reason }

// to executes everything up to an index.
func (x *executor) to(ctx context.Context, index uint64) error {
	for x.at.index < index {
		entries, err := x.feed.take(index)
		if err != nil {
			return err
		}
		if err := x.stretch(ctx, entries); err != nil {
			return err
		}
	}
	return nil
}

// stretch executes the entries after the current state.
func (x *executor) stretch(ctx context.Context, entries []datadir.Entry) error {
	last := entries[len(entries)-1]
	end, err := marker(last.Index, last.Term)
	if err != nil {
		return err
	}
	x.n++
	data := filepath.Join(x.dir, fmt.Sprint("data", x.n))
	if err := x.write(ctx, data, append(entries, end)); err != nil {
		return err
	}
	db := filepath.Join(data, "member", "snap", "db")
	if err := x.run(ctx, data, db, end.Index); err != nil {
		return err
	}
	return x.keep(data, db, last.Index, last.Term)
}

// write creates the scratch data dir.
func (x *executor) write(ctx context.Context, data string, entries []datadir.Entry) error {
	own := []datadir.Member{{ID: selfID, Name: selfName, PeerURLs: []string{selfURL}, ClientURLs: []string{clientURL}},
		{ID: absentID, Name: "etcd-medic-absent", PeerURLs: []string{absentURL}}}
	d := datadir.Dir{MemberID: selfID, ClusterID: x.p.ClusterID, Term: x.at.term, Index: x.at.index,
		Commit:  entries[len(entries)-1].Index,
		Members: append(own, x.at.members...), Removed: x.at.removed, ClusterVersion: x.at.clusterVersion,
		Entries: entries, Minor: x.server.Version.Minor}
	for _, m := range d.Members {
		if m.IsLearner {
			d.Learners = append(d.Learners, m.ID)
		} else {
			d.Voters = append(d.Voters, m.ID)
		}
	}
	edits := []datadir.Edit{datadir.SetMembers(d.Members, d.Removed), datadir.SetConsistentIndex(d.Index),
		datadir.SetTerm(d.Term),
		datadir.SetConfState(d.Voters, d.Learners)}
	_, err := datadir.Write(ctx, data, d, x.source(edits))
	return err
}

// source returns the database for the scratch data dir: a new one, a copy of the base, or the last result.
func (x *executor) source(edits []datadir.Edit) datadir.DBSource {
	switch {
	case x.at.db == "":
		return func(_ context.Context, path string) error {
			if err := emptyDB(path); err != nil {
				return err
			}
			return datadir.EditNew(path, edits...)
		}
	case x.n == 1:
		return datadir.CopyOf(x.at.db, edits...)
	}
	return func(_ context.Context, path string) error {
		if err := os.Rename(x.at.db, path); err != nil {
			return err
		}
		return datadir.EditNew(path, edits...)
	}
}

// emptyDB creates a database without buckets: a server creates those it needs.
func emptyDB(path string) error {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true})
	if err != nil {
		return err
	}
	return db.Close()
}

// keep moves the database out of the data dir, which is removed, and reads its members.
func (x *executor) keep(data, db string, index, term uint64) error {
	kept := filepath.Join(x.dir, fmt.Sprint("db", x.n))
	if err := errors.Join(os.Rename(db, kept), os.RemoveAll(data)); err != nil {
		return err
	}
	d, err := dumpdb.Open(kept)
	if err != nil {
		return fmt.Errorf("the server's database: %w", err)
	}
	defer func() { _ = d.Close() }() // only read
	members, err1 := d.Members()
	removed, err2 := d.RemovedMembers()
	cluster, err3 := d.Cluster()
	x.at = state{db: kept, index: index, term: term, members: realMembers(membersOf(members)), removed: idsOf(removed),
		clusterVersion: cluster.Version}
	return errors.Join(err1, err2, err3)
}

// realMembers removes the members that exist only in the scratch cluster.
func realMembers(members []datadir.Member) []datadir.Member {
	var out []datadir.Member
	for _, m := range members {
		if !scratchMember(m.ID) {
			out = append(out, m)
		}
	}
	return out
}

func scratchMember(id uint64) bool { return id == selfID || id == absentID || id == markerID }

const (
	// pollEvery is how often the scratch database is checked; a server stores what it has executed at least every 100
	// ms.
	pollEvery = 50 * time.Millisecond
	// stall is how long the consistent index may stay unchanged. Executing one entry can take long, such as for a lease
	// with very many keys.
	stall = 3 * time.Minute
)

// run starts the server and kills it once its database has the effect of the last entry, which is the marker at this
// index.
func (x *executor) run(ctx context.Context, data, db string, index uint64) error {
	m, err := x.box.Start(ctx, node.MemberConfig{Name: selfName, DataDir: data, PeerURLs: []string{selfURL},
		ClientURLs:     []string{clientURL},
		InitialCluster: selfName + "=" + selfURL, Token: "etcd-medic-confirm", QuotaBytes: x.quota,
		SnapshotCount: 1 << 40})
	if err != nil {
		return err
	}
	err = x.await(ctx, m, db, index)
	if err := errors.Join(err, m.Kill()); err != nil {
		return err
	}
	if now, done := progress(db); !done { // a read during a write is repeated once
		return &errServer{fmt.Sprintf("the database that etcd %s left is at entry %d, before %d", x.server.Version, now,
			index)}
	}
	return nil
}

func (x *executor) await(ctx context.Context, m *node.Member, db string, index uint64) error {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	var at uint64
	moved := time.Now()
	for {
		now, done := progress(db)
		if done {
			return nil
		}
		if now > at {
			at, moved = now, time.Now()
			x.say(fmt.Sprintf("confirm: etcd %s has executed the log up to entry %d of %d", x.server.Version, at,
				index-1))
		}
		if exit, ended := m.Exited(); ended {
			return &errServer{fmt.Sprintf("etcd %s ended while it executed the log (%s), after entry %d: %s",
				x.server.Version, exit, at, firstOf(m.FatalLines()))}
		}
		if time.Since(moved) > stall {
			return &errServer{fmt.Sprintf("etcd %s made no progress after entry %d for "+
				"%s", x.server.Version, at, stall)}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func firstOf(lines []string) string {
	if len(lines) == 0 {
		return "its log does not say why"
	}
	return lines[0]
}

// progress reads the state of a database to which a server writes: its consistent index, and whether it has the marker.
// It returns 0 and false if the database cannot be read at the moment. bbolt first writes to pages that are free in the
// previous state, then the meta page. So a read returns a consistent state or fails. The marker's row is committed with
// or after everything before it, also by servers up to 3.4, whose consistent index lags.
func progress(path string) (index uint64, done bool) {
	db, err := dumpdb.Open(path)
	if err != nil {
		return 0, false
	}
	defer func() { _ = db.Close() }() // only read
	m, err := db.MetaBucket()
	if err != nil {
		return 0, false
	}
	if m.ConsistentIndex != nil {
		index = *m.ConsistentIndex
	}
	members, err := db.Members()
	return index, err == nil && slices.ContainsFunc(members, func(m dumpdb.Member) bool { return m.ID == markerID })
}

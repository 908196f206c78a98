package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/node"
	"github.com/etcd-medic/etcd-medic/repair/datadir"
)

// Story is one way to break the cluster.
type Story struct {
	// Name is its name on the command line, Title what is broken, Told what is done to the cluster, in a sentence
	// without a period.
	Name, Title, Told string
	// Through are the members (from 0) through which clients can write afterwards.
	Through []int
	do      func(context.Context, *Cluster) error
}

// Stories lists all stories, the default one first.
func Stories() []Story {
	all := []int{0, 1, 2}
	return []Story{
		{"auth", "the auth revision of one member is too high", "node2 is stopped, its auth revision raised by 9 (as " +
			"auth operations applied twice after a restart do), and started again", all,
			func(ctx context.Context, c *Cluster) error { return c.RaiseAuth(ctx, 1, 9) }},
		{"index", "one member skipped an entry of the log", "node2 is stopped, its last write is taken out of its " +
			"database while the consistent index stays (as 3.5.0 to 3.5.2 leave it when they are killed at the wrong " +
			"moment), and it is started again", all,
			func(ctx context.Context, c *Cluster) error { return c.DropWrites(ctx, 1, 1) }},
		{"value", "one member holds another value", "node2 is stopped, one bit of a value in its database is flipped " +
			"(as a bad disk or memory does), and started again", all,
			func(ctx context.Context, c *Cluster) error { return c.FlipValue(ctx, 1) }},
		{"wiped", "one member lost its data dir and was started with an empty one", "node3 is stopped, its data dir " +
			"moved away (as after the loss of a disk), and it is started again with an empty one", []int{0, 1},
			func(ctx context.Context, c *Cluster) error { return c.LoseDir(ctx, 2) }},
	}
}

// Break breaks the cluster as in the story.
func (c *Cluster) Break(ctx context.Context, s Story) error { return s.do(ctx, c) }

// RaiseAuth raises the auth revision in the database of member i, as if auth operations were applied again after a
// restart.
func (c *Cluster) RaiseAuth(ctx context.Context, i int, by uint64) error {
	cli, err := c.Client(i)
	if err != nil {
		return err
	}
	st, err := cli.AuthStatus(ctx)
	if err != nil {
		return err
	}
	return c.edited(ctx, i, func(string) (datadir.Edit, error) {
		return datadir.SetAuthRevision(st.AuthRevision + by),
			nil
	})
}

// DropWrites removes the last n writes from the database of member i and keeps its consistent index, so the member
// believes that they are applied.
func (c *Cluster) DropWrites(ctx context.Context, i, n int) error {
	return c.edited(ctx, i, func(path string) (edit datadir.Edit, err error) {
		db, err := dumpdb.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		last, err := db.CurrentRev()
		if err != nil {
			return nil, err
		}
		var records [][]byte
		for rev, err := range db.RevisionsFrom(dumpdb.Rev{Main: last - int64(n) + 1}) {
			if err != nil {
				return nil, err
			}
			records = append(records, bytes.Clone(rev.RawKey))
		}
		return datadir.DropBucketKeys("key", records...), nil
	})
}

// FlipValue flips a bit in the value of the first key in the database of member i.
func (c *Cluster) FlipValue(ctx context.Context, i int) error {
	return c.edited(ctx, i, func(path string) (edit datadir.Edit, err error) {
		db, err := dumpdb.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		for rev, err := range db.Revisions() {
			if err != nil || rev.Err != nil || len(rev.KV.Value) == 0 {
				continue
			}
			record, at := bytes.Clone(rev.Raw), bytes.Index(rev.Raw, rev.KV.Value)
			record[at] ^= 1
			return datadir.PutBucketKey("key", bytes.Clone(rev.RawKey), record), nil
		}
		return nil, errors.New("no key has a value")
	})
}

// edited stops member i, changes its database and starts it again.
func (c *Cluster) edited(ctx context.Context, i int, what func(db string) (datadir.Edit, error)) error {
	if err := c.members[i].Stop(ctx); err != nil {
		return err
	}
	db := filepath.Join(c.configs[i].DataDir, "member", "snap", "db")
	edit, err := what(db)
	if err != nil {
		return err
	}
	if err := datadir.EditNew(db, edit); err != nil {
		return err
	}
	if err := c.launch(ctx, i); err != nil {
		return err
	}
	return ready(ctx, c.members[i])
}

// LoseDir removes the data dir of member i and starts the member with an empty one. It ends as soon as it hears from
// the leader, who relies on what the member once acknowledged.
func (c *Cluster) LoseDir(ctx context.Context, i int) error {
	if err := c.members[i].Stop(ctx); err != nil {
		return err
	}
	cfg := &c.configs[i]
	if err := os.Rename(cfg.DataDir, filepath.Join(c.o.Dir, "lost-"+cfg.Name)); err != nil {
		return err
	}
	cfg.Existing, c.down[i] = true, true
	if err := c.launch(ctx, i); err != nil {
		return err
	}
	return wait(ctx, "the end of "+cfg.Name, func() bool { return ended(c.members[i]) })
}

func ended(m *node.Member) bool {
	_, ended := m.Exited()
	return ended
}

func wait(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

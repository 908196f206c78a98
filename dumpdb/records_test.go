package dumpdb

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
)

// hashedRow is one record; hashedFrom is the compact revision of the database that holds it.
type hashedRow struct {
	rev   Rev
	key   string
	value string
	del   bool
	// counts is true for what the content hash looks at.
	counts bool
}

const hashedFrom = 6

// hashesOf writes the rows to a new database in the order given and returns both hashes.
func hashesOf(t *testing.T, rows []hashedRow, order func(int) int) (records, content string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	bolt, err := bbolt.Open(path, 0o600, nil)
	fatal(t, err)
	for i := range rows {
		r := rows[order(i)]
		fatal(t, bolt.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucketIfNotExists([]byte("key"))
			if err != nil {
				return err
			}
			meta, err := tx.CreateBucketIfNotExists([]byte("meta"))
			if err != nil {
				return err
			}
			kv := mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value), ModRevision: r.rev.Main,
				CreateRevision: r.rev.Main, Version: 1}
			at := r.rev.Bytes()
			if r.del {
				kv, at = mvccpb.KeyValue{Key: []byte(r.key), Value: []byte(r.value)}, append(at, 't')
			}
			data, err := kv.Marshal()
			if err != nil {
				return err
			}
			if err := meta.Put([]byte("scheduledCompactRev"), Rev{Main: hashedFrom}.Bytes()); err != nil {
				return err
			}
			return b.Put(at, data)
		}))
	}
	fatal(t, bolt.Close())
	in, err := open(t, path).Inspect(context.Background())
	fatal(t, err)
	return in.RecordsHash, in.Hashes["key"]
}

// TestRecordsHash: the hash of all records sees a change of any of them, also of those that a compaction would remove,
// and the content hash of those that count only; how the rows came into the file changes neither.
func TestRecordsHash(t *testing.T) {
	rows := []hashedRow{
		{rev: Rev{Main: 2}, key: "a", value: "1"},
		{rev: Rev{Main: 3}, key: "a", value: "2", counts: true},
		{rev: Rev{Main: 4}, key: "b", value: "1"},
		{rev: Rev{Main: 5}, key: "b", del: true},
		{rev: Rev{Main: 6}, key: "c", value: "1", counts: true},
		{rev: Rev{Main: 7}, key: "c", value: "2", counts: true},
		{rev: Rev{Main: 8}, key: "c", del: true, counts: true},
	}
	forward := func(i int) int { return i }
	records, content := hashesOf(t, rows, forward)
	if records == "" || content == "" || records == content {
		t.Fatalf("hash of the records %q, of the content %q", records, content)
	}
	if r, c := hashesOf(t, rows, func(i int) int { return len(rows) - 1 - i }); r != records || c != content {
		t.Error("the order of writing changes a hash")
	}
	for i, r := range rows {
		changed := append([]hashedRow(nil), rows...)
		changed[i].value += "x"
		rec, con := hashesOf(t, changed, forward)
		if rec == records {
			t.Errorf("a change of %v does not show in the hash of the records", r.rev)
		}
		if (con == content) == r.counts {
			t.Errorf("a change of %v shows in the content hash: %v, want %v", r.rev, con != content, r.counts)
		}
		if rec, _ = hashesOf(t, append(append([]hashedRow(nil), rows[:i]...), rows[i+1:]...), forward); rec == records {
			t.Errorf("the lack of %v does not show in the hash of the records", r.rev)
		}
	}
}

// TestHashUntil: the content hash at every revision back to the compact one, by taking off what lies above, is what
// reading up to there gives.
func TestHashUntil(t *testing.T) {
	ctx, hashes := context.Background(), 0
	for _, name := range []string{"k-lagging-node", "l-compaction-skew"} {
		paths, err := filepath.Glob(filepath.Join(evidencetest.Incident(t, name), "node*", "member", "snap", "db"))
		fatal(t, err)
		for _, path := range paths {
			db := open(t, path)
			in, err := db.Inspect(ctx)
			fatal(t, err)
			seen := map[string]bool{}
			for rev := max(1, in.KV.CompactRev); rev <= in.KV.CurrentRev; rev++ {
				want, err := db.ContentHash(ctx, -1, rev)
				fatal(t, err)
				got, err := in.Content.HashUntil(ctx, db, rev)
				fatal(t, err)
				if got != want {
					t.Errorf("%s: revision %d: %s, want %s", path, rev, got, want)
				}
				seen[got] = true
			}
			hashes += len(seen)
			if _, err := in.Content.HashUntil(ctx, db, in.KV.CurrentRev+1); !errors.Is(err, ErrFutureRev) {
				t.Error(err)
			}
			if _, err := in.Content.HashUntil(ctx, db, in.KV.CompactRev-1); !errors.Is(err, ErrCompacted) {
				t.Error(err)
			}
		}
	}
	if hashes < 300 {
		t.Errorf("%d hashes", hashes)
	}
}

// TestBucketHashSees: the hash of a small bucket sees every part of its rows that members must have in common, and none
// that may differ between sound members.
func TestBucketHashSees(t *testing.T) {
	const role, user = `set authRoles r "\x0a\x01r\x12\x09\x08\x01\x12\x01b\x1a\x02/c"`,
		`set authUsers u "\x0a\x01u\x12\x01p\x1a\x01r"`
	const lease, member = `set lease "\x00\x00\x00\x00\x00\x00\x00\x10" "\x08\x10\x10\x3c"`,
		`set members a1 "{\"id\":161,\"peerURLs\":[\"http://a\",\"http://b\"],\"name\":\"n\",` +
			`\"clientURLs\":[\"http://c\"]}"`
	for name, c := range map[string]struct {
		bucket, one, other string
		same               bool
	}{
		"another permission":  {"authRoles", role, strings.Replace(role, `\x08\x01`, `\x08\x02`, 1), false},
		"another key":         {"authRoles", role, strings.Replace(role, `\x01b`, `\x01a`, 1), false},
		"another end":         {"authRoles", role, strings.Replace(role, `/c`, `/d`, 1), false},
		"no permission":       {"authRoles", role, `set authRoles r "\x0a\x01r"`, false},
		"another role":        {"authRoles", role, role + "\n" + `set authRoles q "\x0a\x01q"`, false},
		"another salt":        {"authUsers", user, strings.Replace(user, `\x01p`, `\x01q`, 1), true},
		"another user's role": {"authUsers", user, strings.Replace(user, `\x01r`, `\x01q`, 1), false},
		"no password": {"authUsers", user, strings.Replace(user, `\x1a\x01r`, `\x1a\x01r\x22\x02\x08\x01`,
			1), false},
		"another TTL": {"lease", lease, strings.Replace(lease, `\x3c`, `\x3d`, 1), true},
		"another lease": {"lease", lease, strings.ReplaceAll(lease, `\x10" "\x08\x10`, `\x11" "\x08\x11`),
			false},
		"URLs in order": {"members", member, strings.Replace(member, `\"http://a\",\"http://b\"`,
			`\"http://b\",\"http://a\"`, 1), true},
		"another URL":        {"members", member, strings.Replace(member, `http://b`, `http://x`, 1), false},
		"another client URL": {"members", member, strings.Replace(member, `http://c`, `http://x`, 1), false},
		"another name":       {"members", member, strings.Replace(member, `\"n\"`, `\"m\"`, 1), false},
		"a learner": {"members", member, strings.Replace(member, `\"name\"`, `\"isLearner\":true,\"name\"`,
			1), false},
		"removed": {"members_removed", "set members_removed a1 removed",
			"set members_removed a2 removed", false},
		"an alarm":            {"alarm", `set alarm "\x08\x10\x10\x01" ""`, `set alarm "\x08\x10\x10\x02" ""`, false},
		"an alarm of another": {"alarm", `set alarm "\x08\x10\x10\x01" ""`, `set alarm "\x08\x11\x10\x01" ""`, false},
		"auth on":             {"auth", `set auth authEnabled "\x00"`, `set auth authEnabled "\x01"`, false},
		"the auth revision": {"auth", `set auth authRevision "\x00\x00\x00\x00\x00\x00\x00\x05"`,
			`set auth authRevision "\x00\x00\x00\x00\x00\x00\x00\x06"`, false},
		"the cluster version": {"cluster", "set cluster clusterVersion 3.5.0", "set cluster clusterVersion 3.6.0",
			false},
		"a bucket of others": {"other", "set other k v", "set other k w", false},
		"a key of others":    {"other", "set other k v", "set other l v", false},
	} {
		hash := func(lines string) string {
			h, err := made(t, lines).BucketHash(t.Context(), c.bucket)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return h
		}
		if one, other := hash(c.one), hash(c.other); one == "" || (one == other) != c.same {
			t.Errorf("%s: %s and %s", name, one, other)
		}
	}
}

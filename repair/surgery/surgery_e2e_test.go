//go:build e2e

package surgery_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/repair/surgery"
)

// TestE2ENarrowRepairsStart damages one member of a real cluster, repairs it, and lets it rejoin: log and database,
// with the other members' help and with its own log alone.
func TestE2ENarrowRepairsStart(t *testing.T) {
	for _, version := range []string{"3.4.3", "3.5.35", "3.6.16", "3.7.3"} {
		for name, c := range map[string]struct {
			change surgery.Change
			alone  bool
			spoil  func(t *testing.T, dir string)
		}{
			"wal": {surgery.WAL{}, false, spoilLog}, "db": {surgery.DB{}, false, spoilPage},
			"db-alone": {surgery.DB{}, true, spoilPage},
		} {
			t.Run(version+"-"+name, func(t *testing.T) {
				t.Parallel()
				c2 := clustertest.Start(t, clustertest.Server(t, version), 3, clustertest.Options{})
				for i := range 200 {
					c2.Put(i%3, fmt.Sprintf("k%02d", i%40), strings.Repeat("v", 200+i))
				}
				c2.Delete(0, "k07")
				_, rev := c2.WaitEqual()
				hash, _ := c2.HashKV(0, rev)
				var dirs []string
				for _, s := range c2.Sources() {
					_, dir, _ := strings.Cut(s, "=")
					dirs = append(dirs, dir)
				}
				c.spoil(t, dirs[1])
				with := []string{dirs[0], dirs[2]}
				if c.alone {
					with = nil
				}
				out, r, err := repair(t, c.change, dirs[1], with)
				if err != nil {
					t.Fatal(err)
				}
				if r.Before.Class == "healthy" || r.After.Health != check.Healthy {
					t.Errorf("before %s, after %s: %s", r.Before.Class, r.After.Class, r.After.Summary)
				}
				ok(t, os.Rename(c2.DataDir(1), c2.DataDir(1)+".before"))
				ok(t, os.Rename(out, c2.DataDir(1)))
				for i := range 3 {
					c2.StartProcess(i)
				}
				for i := range 3 {
					c2.WaitServing(i)
					if got, _ := c2.HashKV(i, rev); got != hash {
						t.Errorf("member %d: hash %d at %d, was %d", i, got, rev, hash)
					}
				}
				c2.Put(1, "after", "repair")
				c2.WaitEqual()
			})
		}
	}
}

// spoilLog breaks the log in the middle, with entries on both sides.
func spoilLog(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%v %v", files, err)
	}
	rewrite(t, files[0], func(b []byte) []byte {
		at := bytes.Index(b, []byte("k20")) // the first put of this key
		if at < 0 {
			t.Fatal("no put found")
		}
		b[at+100] ^= 0x55
		return b
	})
}

// spoilPage breaks a leaf page of bucket key.
func spoilPage(t *testing.T, dir string) {
	db, err := dumpdb.Open(dbOf(dir))
	ok(t, err)
	var page uint64
	n := 0
	for r, err := range db.Rows("key") {
		ok(t, err)
		if n++; n == 90 {
			page = r.Page
		}
	}
	ok(t, db.Close())
	rewrite(t, dbOf(dir), func(b []byte) []byte { copy(b[page*4096:], make([]byte, 4096)); return b })
}

// TestE2EDropV2 makes a 3.5 cluster with v2 keys that 3.6 refuses, and starts it with 3.6 once they are gone.
func TestE2EDropV2(t *testing.T) {
	c := clustertest.Start(t, clustertest.Server(t, "3.5.35"), 1,
		clustertest.Options{SnapshotCount: 10, Args: []string{"--enable-v2"}})
	for i := range 5 {
		putV2(t, c.Endpoint(0), fmt.Sprintf("app/k%d", i), "old")
	}
	var rev int64
	for i := range 60 {
		rev = c.Put(0, fmt.Sprintf("k%02d", i), "new")
	}
	var dir string
	for _, s := range c.Sources() {
		_, dir, _ = strings.Cut(s, "=")
	}
	out, r, err := repair(t, surgery.Meta{DropV2: true}, dir, nil)
	ok(t, err)
	if len(r.GivesUp) == 0 {
		t.Errorf("%+v", r)
	}
	plain := clustertest.Start(t, clustertest.Server(t, "3.6.16"), 1, clustertest.Options{})
	plain.StopAll()
	ok(t, os.RemoveAll(plain.DataDir(0)))
	ok(t, os.Rename(out, plain.DataDir(0)))
	plain.StartProcess(0)
	plain.WaitServing(0)
	got, err := plain.Client(0).Get(context.Background(), "k", clientv3.WithPrefix())
	ok(t, err)
	if len(got.Kvs) != 60 || got.Header.Revision != rev {
		t.Errorf("%d keys at %d, want 60 at %d", len(got.Kvs), got.Header.Revision, rev)
	}
	// The dir as it was is refused by 3.6.
	plain.StopAll()
	ok(t, os.RemoveAll(plain.DataDir(0)))
	ok(t, os.CopyFS(plain.DataDir(0), os.DirFS(dir)))
	plain.StartProcess(0)
	plain.WaitExit(0)
}

func putV2(t *testing.T, endpoint, key, value string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, endpoint+"/v2/keys/"+key,
		strings.NewReader(url.Values{"value": {value}}.Encode()))
	ok(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	ok(t, resp.Body.Close())
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s: %s", key, resp.Status)
	}
}

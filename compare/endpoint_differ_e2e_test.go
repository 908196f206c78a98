//go:build e2e

package compare_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
)

// replaced changes the first value of a bucket that holds old.
func replaced(bucket, old, new string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if bytes.Contains(v, []byte(old)) {
				return b.Put(bytes.Clone(k), bytes.Replace(v, []byte(old), []byte(new), 1))
			}
		}
		return fmt.Errorf("no row of %s holds %s", bucket, old)
	}
}

// dropped deletes the first row of a bucket.
func dropped(bucket string) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(bucket))
		k, _ := b.Cursor().First()
		if k == nil {
			return fmt.Errorf("%s is empty", bucket)
		}
		return b.Delete(bytes.Clone(k))
	}
}

// otherHash changes one letter of a bcrypt hash.
func otherHash(tx *bbolt.Tx) error {
	b := tx.Bucket([]byte("authUsers"))
	k, v := b.Cursor().First()
	at := bytes.Index(v, []byte("$2a$"))
	if at < 0 || at+59 > len(v) {
		return fmt.Errorf("%q has no bcrypt hash", v)
	}
	v = bytes.Clone(v)
	if v[at+40]++; v[at+40] == '{' || v[at+40] == '[' || v[at+40] == ':' {
		v[at+40] = 'a'
	}
	return b.Put(bytes.Clone(k), v)
}

// offline changes the database of a member while it is stopped.
func offline(t *testing.T, c *clustertest.Cluster, i int, f func(file string) error) {
	t.Helper()
	c.Stop(i)
	if err := f(filepath.Join(c.DataDir(i), "member", "snap", "db")); err != nil {
		t.Fatal(err)
	}
	c.StartProcess(i)
	c.WaitServing(i)
}

func rewrite(file string, f func(tx *bbolt.Tx) error) error {
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{Timeout: time.Second})
	if err != nil {
		return err
	}
	return errors.Join(db.Update(f), db.Close())
}

var streamsLine = regexp.MustCompile(`(?m)^grpc_server_started_total\{grpc_method="Snapshot",[^}]*\} (\d+)$`)

// streams is how many snapshot streams each member has given since it started.
func streams(t *testing.T, c *clustertest.Cluster, access evidence.Access) (n []int) {
	t.Helper()
	for i := range c.Size() {
		page, err := access.Get(t.Context(), c.Endpoint(i), "/metrics", 16<<20)
		if err != nil {
			t.Fatal(err)
		}
		m := streamsLine.FindSubmatch(page)
		if m == nil {
			t.Fatalf("%s does not count its streams", c.Name(i))
		}
		v, _ := strconv.Atoi(string(m[1]))
		n = append(n, v)
	}
	return n
}

// TestE2EEndpointsDifferEach: what differs on one running member is found without logs, whatever it is, with one
// snapshot stream of each member, and nobody is called a member that loses nothing. As long as nothing differs, the
// cluster is healthy, although it is written to.
func TestE2EEndpointsDifferEach(t *testing.T) {
	for _, line := range []string{"3.4.23", "3.5.35", "3.6.16", "3.7.3"} {
		t.Run(line, func(t *testing.T) {
			c := clustertest.Start(t, clustertest.Server(t, line), 3, clustertest.Options{TLS: true,
				Args: []string{"--heartbeat-interval=200", "--election-timeout=2000", "--bcrypt-cost=4"}})
			o := compare.Options{Access: evidence.Access{User: c.EnableAuth()}}
			o.Access.CACert, o.Access.Cert, o.Access.Key = c.Certificates()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c.Put(0, "altered", "soundvalue")
			if _, err := c.Client(0).Grant(ctx, 3600); err != nil {
				t.Fatal(err)
			}
			// the first of all users, and one that no client logs in as
			if _, err := c.Client(0).UserAdd(ctx, "altered", "secret"); err != nil {
				t.Fatal(err)
			}
			st, err := c.Client(2).Status(ctx, c.Endpoint(2))
			if err != nil {
				t.Fatal(err)
			}
			nospace, err := (&etcdserverpb.AlarmMember{MemberID: st.Header.MemberId,
				Alarm: etcdserverpb.AlarmType_NOSPACE}).Marshal()
			if err != nil {
				t.Fatal(err)
			}
			address := [2]string{`"node1"`, `"nodeX"`}
			if line < "3.6" { // names are not compared before 3.6, and addresses not used from the database
				is := `"peerURLs":["` + c.PeerURL(0)
				address = [2]string{is, strings.Replace(is, "https:", "http:", 1)}
			}
			for _, d := range []struct {
				what, check string
				busy        bool // false where writes change it, or nothing orders its changes
				edit        func(tx *bbolt.Tx) error
			}{
				{"nothing", "", true, nil},
				{"nothing while idle", "", false, nil},
				{"a key", "K01", true, replaced("key", "soundvalue", "otherthing")},
				{"auth rows", "A03", true, dropped("authRoles")},
				{"a password hash", "A09", true, otherHash},
				{"a lease", "L01", false, dropped("lease")},
				{"members", "M02", false, replaced("members", address[0], address[1])},
				{"auth revision", "A01", false, func(tx *bbolt.Tx) error {
					b, key := tx.Bucket([]byte("auth")), []byte("authRevision")
					return b.Put(key, binary.BigEndian.AppendUint64(nil, binary.BigEndian.Uint64(b.Get(key))+3))
				}},
				{"an alarm", "M17", false, func(tx *bbolt.Tx) error {
					return tx.Bucket([]byte("alarm")).Put(nospace, nil)
				}},
			} {
				if line == "3.4.23" && (d.what == "members" || d.what == "a password hash") {
					continue // a restart writes the row again from its log; each member makes its own hash
				}
				t.Run(d.what, func(t *testing.T) {
					c.WaitEqual()
					var sound []byte
					if d.edit != nil {
						offline(t, c, 2, func(file string) (err error) {
							if sound, err = os.ReadFile(file); err != nil {
								return err
							}
							return rewrite(file, d.edit)
						})
					}
					wantFound(t, c, o, d.check, d.busy)
					if d.edit != nil {
						offline(t, c, 2, func(file string) error { return os.WriteFile(file, sound, 0o600) })
					}
				})
			}
		})
	}
}

// wantFound diagnoses the running members and wants an error of that check, or none at all.
func wantFound(t *testing.T, c *clustertest.Cluster, o compare.Options, id string, busy bool) {
	t.Helper()
	if busy {
		defer writing(c)()
	}
	var specs []evidence.Spec
	for i := range c.Size() {
		specs = append(specs, evidence.Spec{Name: c.Name(i), Where: c.Endpoint(i)})
	}
	before := streams(t, c, o.Access)
	r, err := compare.Diagnose(t.Context(), specs, o)
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range streams(t, c, o.Access) {
		if n != before[i]+1 {
			t.Errorf("%s gave %d snapshot streams, one is enough", c.Name(i), n-before[i])
		}
	}
	t.Logf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	for i := range r.Members {
		f := &r.Members[i]
		t.Logf("%s: stored index %d, applied %d", f.Name, *f.DB.ConsistentIndex, f.AppliedIndex)
	}
	found := false
	for _, f := range r.Findings {
		t.Logf("%s %s: %s", f.Severity, f.Check, f.Title)
		found = found || string(f.Check) == id
	}
	switch {
	case (r.Verdict.Health == check.Healthy) != (id == "") || r.Verdict.Health == check.HealthUnknown:
		t.Errorf("%s: %s", r.Verdict.Class, r.Verdict.Summary)
	case id != "" && !found:
		t.Errorf("no finding of %s", id)
	case r.Best != nil && len(r.Best.Lost.Unproven) == 0:
		t.Errorf("best claims to lose nothing: %+v", r.Best)
	}
}

// writing writes through the first member until the returned function is called.
func writing(c *clustertest.Cluster) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	cli := c.Client(0)
	wg.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			_, _ = cli.Put(ctx, fmt.Sprintf("k%d", n%50), fmt.Sprint(n))
			time.Sleep(5 * time.Millisecond)
		}
	})
	return func() { cancel(); wg.Wait() }
}

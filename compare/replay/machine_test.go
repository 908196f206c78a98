package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/etcd-medic/etcd-medic/compare/apply"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
	"github.com/etcd-medic/etcd-medic/release"
)

// stateOfMachine is what a machine says of its state, as text.
func stateOfMachine(m *Machine, users, roles []string, leases []dumpdb.ID) []string {
	out := []string{fmt.Sprintf("revision %d, compacted at %d, %d keys, auth %t at %d", m.Revision(),
		m.CompactRevision(), m.Keys(), m.AuthEnabled(), m.AuthRevision())}
	m.Live(func(key string, at dumpdb.Rev, sum uint64, lease int64) bool {
		again, on, ok := m.Key(key)
		out = append(out, fmt.Sprintf("key %s at %v: %x, lease %d; %x, %d, %t", key, at, sum, lease, again, on, ok))
		return true
	})
	for _, name := range users {
		u, ok := m.User(name)
		out = append(out, fmt.Sprintf("user %+v, %t", u, ok))
	}
	for _, name := range roles {
		r, ok := m.Role(name)
		out = append(out, fmt.Sprintf("role %+v, %t", r, ok))
	}
	for _, id := range leases {
		ttl, ok := m.LeaseTTL(int64(id))
		out = append(out, fmt.Sprintf("lease %s %d, %t", id, ttl, ok))
	}
	return out
}

// TestMachineIsAServer: a machine that executes a log from its first entry on ends in the state that the server's
// database has, and one that begins with that database is in the same state. Each change it reports is a record of the
// database.
func TestMachineIsAServer(t *testing.T) {
	for _, name := range []string{"m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7", "m-healthy-3.5-removed-member",
		"gen-healthy-3.4", "l-compaction-skew"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := open(t, filepath.Join(evidencetest.Incident(t, name), "node1")).Members[0]
			ran, changes, last := executed(t, m)
			for _, u := range m.DB.Auth.Users { // no rule depends on a password
				ran.SetPassword(u.Name, u.Password, u.HasOptions)
			}
			stored, err := NewMachine(t.Context(), m.DB.Handle, MachineOptions{Version: m.Version.Release()})
			if err != nil {
				t.Fatal(err)
			}
			compareMachines(t, m, ran, stored)
			compareChanges(t, m, changes)
			if f := last.Find(stored); !f.Most() || f.Found != f.Tried || f.InPlace == 0 {
				t.Errorf("last writes of the log in the database: %+v", f)
			}
		})
	}
}

// executed executes the log of a member up to what it has applied. The changes have the values that they take from
// older records.
func executed(t *testing.T, m *evidence.Member) (*Machine, []Change, *LastWrites) {
	t.Helper()
	values := map[dumpdb.Rev][]byte{}
	ran, err := NewMachine(t.Context(), nil, MachineOptions{Version: m.Version.Release(),
		Values: func(_ string, at dumpdb.Rev) ([]byte, bool) { return values[at], true }})
	if err != nil {
		t.Fatal(err)
	}
	var changes []Change
	last := &LastWrites{}
	for e, err := range Log(t.Context(), []*evidence.Member{m}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Index > m.AppliedMax {
			break
		}
		if e.Type == dumplog.EntryNormal && e.Err == nil && e.Req != nil {
			st := ran.Prepare(e)
			out, written := ran.Apply(st)
			if len(written) != st.Writes() || (len(written) > 0) != (st.Effects() != 0) ||
				len(written) > 0 && out.State != Applied || st.Rule != nil {
				t.Errorf("entry %d: %+v, %d records, %d prepared", e.Index, out, len(written), st.Writes())
			}
			for i := range written {
				c := &written[i]
				if c.From != (dumpdb.Rev{}) {
					c.Value = values[c.From]
				}
				if values[c.Rev] = bytes.Clone(c.Value); !st.Touches(c.Key) {
					t.Errorf("entry %d: key %s", e.Index, c.Key)
				}
			}
			changes = append(changes, written...)
		}
		last.Add(&e)
	}
	return ran, changes, last
}

func compareMachines(t *testing.T, m *evidence.Member, ran, stored *Machine) {
	t.Helper()
	users, roles := []string{"absent"}, []string{"none"}
	for _, u := range m.DB.Auth.Users {
		users = append(users, u.Name)
	}
	for _, r := range m.DB.Auth.Roles {
		roles = append(roles, r.Name)
	}
	leases := []dumpdb.ID{1}
	for _, l := range m.DB.Leases {
		leases = append(leases, l.ID)
	}
	if d := cmp.Diff(stateOfMachine(stored, users, roles, leases),
		stateOfMachine(ran, users, roles, leases)); d != "" {
		t.Errorf("stored (-) and executed (+): %s", d)
	}
	if d := cmp.Diff(stateOfMachine(stored.Clone(), users, roles, leases),
		stateOfMachine(stored, users, roles, leases)); d != "" {
		t.Errorf("clone (-) and original (+): %s", d)
	}
}

// compareChanges looks for the changes above the compact revision in the database.
func compareChanges(t *testing.T, m *evidence.Member, changes []Change) {
	t.Helper()
	var have []string
	for rev, err := range m.DB.Handle.Revisions() {
		if err != nil {
			t.Fatal(err)
		}
		if rev.Main > m.CompactRevision() {
			have = append(have, recordText(rev.Rev, string(rev.KV.Key), rev.Tombstone, rev.KV.CreateRevision,
				rev.KV.Version, rev.KV.Lease, rev.KV.Value))
		}
	}
	var want []string
	for _, c := range changes {
		if c.Rev.Main > m.CompactRevision() {
			want = append(want, recordText(c.Rev, c.Key, c.Delete, c.Create, c.Version, c.Lease, c.Value))
		}
	}
	if d := cmp.Diff(have, want); d != "" {
		t.Errorf("records (-) and changes (+): %s", d)
	}
	if len(have) == 0 || !slices.IsSorted([]int64{0, changes[0].Rev.Main, m.CurrentRevision()}) {
		t.Errorf("%d records, the first change at %v", len(have), changes[0].Rev)
	}
}

func recordText(at dumpdb.Rev, key string, deleted bool, create, version, lease int64, value []byte) string {
	return fmt.Sprintf("%v %s %t create %d version %d lease %d %.40q", at, key, deleted, create, version, lease, value)
}

// TestMachineByRelease: an entry that releases judge differently has no certain effect, until a version decides.
func TestMachineByRelease(t *testing.T) {
	m, err := NewMachine(t.Context(), nil, MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nameless := Entry{Req: authOf(dumplog.KindAuthRoleAdd, "", "")}
	if st := m.Prepare(nameless); st.Rule != release.RoleNeedsName || st.State != Applied || st.Sure {
		t.Errorf("no version: %+v", st)
	}
	if st := m.PrepareAs(nameless, release.AnyOf(4)); st.Rule != nil || st.State != NoEffect || !st.Sure {
		t.Errorf("3.4: %+v", st)
	}
	if m.Version() != release.Of("") || m.Prepare(nameless).Rule == nil {
		t.Error("the machine has kept the other version")
	}
	if m.SkipTo(5); m.Revision() != 5 {
		t.Errorf("revision %d", m.Revision())
	}
	if m.SkipTo(4); m.Revision() != 5 {
		t.Errorf("revision %d, it fell", m.Revision())
	}
	for minor, want := range map[int]bool{5: false, 6: true} {
		m, err := NewMachine(t.Context(), nil, MachineOptions{Version: release.AnyOf(minor)})
		if err != nil {
			t.Fatal(err)
		}
		if !m.ChecksPermissions() {
			t.Errorf("minor %d without an alarm", minor)
		}
		m.s.Alarms[apply.Alarm{Member: 1, Type: apply.AlarmNoSpace}] = struct{}{}
		if got := m.ChecksPermissions(); got != want {
			t.Errorf("minor %d with an alarm: %t", minor, got)
		}
	}
}

// TestDeniedRange: members without the waiting client drop a range of a transaction that the user may not read.
func TestDeniedRange(t *testing.T) {
	read := func(key string) []dumplog.RequestOp {
		return []dumplog.RequestOp{{Range: &dumplog.RangeRequest{Key: []byte(key)}}, putOp("/app/a", "1")}
	}
	for name, c := range map[string]struct {
		r      *dumplog.Request
		single bool
		sure   bool
	}{
		"a key of the user":       {r: txn(nil, read("/app/b"), nil), sure: true},
		"a key of others":         {r: txn(nil, read("/x"), nil)},
		"in the branch not taken": {r: txn(nil, []dumplog.RequestOp{putOp("/app/a", "1")}, read("/x"))},
		"the only member":         {r: txn(nil, read("/x"), nil), single: true, sure: true},
		"a put":                   {r: put("/app/a", "1"), sure: true},
	} {
		m, err := NewMachine(t.Context(), nil, MachineOptions{Version: release.Exact(6, 9), Single: c.single})
		if err != nil {
			t.Fatal(err)
		}
		a := rooted()
		a.Users["app"] = &apply.User{Roles: []string{"app"}}
		a.Roles["app"] = []apply.Permission{{Type: apply.PermBoth, Key: "/app/", End: "/app0"}}
		m.s.Auth = a
		c.r.Header = dumplog.Header{Username: "app", AuthRevision: a.Revision}
		if st := m.Prepare(Entry{Req: c.r}); st.Sure != c.sure {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestMachineOfAnUnreadableDatabase: a machine does not begin with keys that are not known.
func TestMachineOfAnUnreadableDatabase(t *testing.T) {
	dirs := handLogs(t, from1(9), from1(9))
	putIn("key", string(revKey(20)), []byte("not a record"))(t, filepath.Join(dirs[1], "member"))
	set := open(t, dirs...)
	sound, err := NewMachine(t.Context(), set.Members[0].DB.Handle, MachineOptions{})
	if err != nil || sound.Keys() != 9 || sound.Revision() != 10 {
		t.Fatalf("%v", err)
	}
	if sum, lease, ok := sound.Key("absent"); ok || sum != 0 || lease != 0 {
		t.Errorf("a key that is not there: %d %d %t", sum, lease, ok)
	}
	if m, err := NewMachine(t.Context(), set.Members[1].DB.Handle, MachineOptions{}); err == nil || m != nil {
		t.Error("a machine with a record that does not decode")
	}
	if m, err := NewMachine(ctxtest.EndingAfter(2), set.Members[0].DB.Handle, MachineOptions{}); m != nil ||
		!errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up: %v", err)
	}
}

// TestMachineRefuses: a refused entry writes nothing, and the outcome says why.
func TestMachineRefuses(t *testing.T) {
	m, err := NewMachine(t.Context(), nil, MachineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.s.Auth = rooted()
	r := put("k", "v")
	r.Header = dumplog.Header{Username: "app", AuthRevision: m.s.Auth.Revision}
	out, written := m.Apply(m.Prepare(Entry{Req: r}))
	if out.State != Refused || out.Reason == ReasonNone || len(written) > 0 || m.Keys() > 0 {
		t.Errorf("%+v, %+v", out, written)
	}
}

// TestPositionsEnd: places in a log that is not read to its end are an error, not places that do not exist.
func TestPositionsEnd(t *testing.T) {
	m := open(t, handLogs(t, from1(9))...).Members[0]
	for asked := int64(0); ; asked++ {
		ctx := ctxtest.EndingAfter(asked)
		found, err := positionsIn(ctx, m, []uint64{5, 6})
		if ctx.Left() >= 0 {
			if err != nil || len(found) != 2 || asked == 0 {
				t.Errorf("%v, %v after %d", found, err, asked)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || found != nil {
			t.Fatalf("end at %d: %v, %v", asked, found, err)
		}
	}
}

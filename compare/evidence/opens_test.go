package evidence_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/ctxtest"
)

// leftovers lists what is left in the folder for temporary files, which is a new one until the test ends.
func leftovers(t *testing.T) func() []string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	return func() (names []string) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
}

// TestOpenEnds: a run that ends while sources are opened returns the error of its context and leaves no unpacked
// archive behind. Until then it says what it reads.
func TestOpenEnds(t *testing.T) {
	archive := filepath.Join(evidencetest.Root(t), "testdata", "incidents", "k-lagging-node", "nodes.tar.gz")
	specs := []evidence.Spec{{Where: archive}}
	left := leftovers(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	o := evidence.Options{Progress: func(what string) { said <- what; cancel() }}
	if set, err := evidence.Open(ctx, specs, o); set != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("while reading: %v, %v", set, err)
	}
	if what := <-said; !strings.HasPrefix(what, "reading node") {
		t.Errorf("it reads %q", what)
	}
	if set, err := evidence.Open(ctx, specs, evidence.Options{}); set != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("before: %v, %v", set, err)
	}
	if p, err := evidence.Locate(ctx, evidence.Spec{Where: archive}); p != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("locate: %v, %v", p, err)
	}
	if names := left(); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
}

// TestKeyEnds: the key for digests is read from the sources too.
func TestKeyEnds(t *testing.T) {
	dir := furnished(t).Close(5, 2)
	p, err := evidence.Locate(t.Context(), evidence.Spec{Where: dir})
	if err != nil {
		t.Fatal(err)
	}
	if k, err := p.Redact(ctxtest.EndingAfter(0)); k != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", k, err)
	}
	if err := p.Unchanged(ctxtest.EndingAfter(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("whether it changed: %v", err)
	}
	m := openDeep(t, dir)
	if k, err := m.Source.Parts().Redact(t.Context()); k != nil || err != nil {
		t.Errorf("the parts of an opened source have the key %v, %v", k, err)
	}
	if err := m.Source.Parts().Unchanged(t.Context()); err != nil {
		t.Error(err)
	}
	var none *evidence.Member
	if none.Digest([]byte("v")) == m.Digest([]byte("v")) || none.Digest([]byte("v")) == "" {
		t.Errorf("digest without a member: %q", none.Digest([]byte("v")))
	}
	r := dumplog.Request{Kind: dumplog.KindPut, Put: &dumplog.PutRequest{Key: []byte("/k"), Value: []byte("secret")}}
	if s := m.Describe(&r); !strings.Contains(s, "/k") || !strings.Contains(s, m.Digest([]byte("secret"))) ||
		strings.Contains(s, "secret") {
		t.Errorf("described as %s", s)
	}
}

// TestLocateOne: a command that reads one source is given one. What was unpacked for it is removed.
func TestLocateOne(t *testing.T) {
	archive := filepath.Join(evidencetest.Root(t), "testdata", "incidents", "k-lagging-node", "nodes.tar.gz")
	left := leftovers(t)
	var bad *evidence.SourceError
	if p, err := evidence.Locate(t.Context(), evidence.Spec{Where: archive}); p != nil || !errors.As(err, &bad) ||
		bad.Found != "several sources" || bad.Where != archive {
		t.Errorf("an archive of several: %v, %v", p, err)
	}
	if names := left(); len(names) > 0 {
		t.Errorf("left: %q", names)
	}
	p, err := evidence.Locate(t.Context(), evidence.Spec{Where: archive + "#node2"})
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "node2" || p.Kind != evidence.KindDataDir || len(left()) != 1 {
		t.Errorf("%+v, left: %q", p, left())
	}
	if err := p.Close(); err != nil || len(left()) > 0 {
		t.Errorf("closed: %v, left: %q", err, left())
	}
}

// TestLocateSeesAWriter: an archive from which parts were unpacked, and a file of them, must stay as they are.
func TestLocateSeesAWriter(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "nodes.tar.gz")
	packed, err := os.ReadFile(filepath.Join(evidencetest.Root(t), "testdata", "incidents", "k-lagging-node",
		"nodes.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for changed, change := range map[string]func(p *evidence.Parts) error{
		"": func(*evidence.Parts) error { return nil },
		"nodes.tar.gz": func(*evidence.Parts) error {
			return os.WriteFile(archive, append(packed, 0), 0o600)
		},
		"member/snap/db": func(p *evidence.Parts) error { return os.Truncate(p.DB, 8192) },
	} {
		if err := os.WriteFile(archive, packed, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := evidence.Locate(t.Context(), evidence.Spec{Where: archive + "#node2"})
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(change(p), p.Unchanged(t.Context()))
		var is *evidence.ChangedError
		if errors.As(err, &is) != (changed != "") || is != nil && !strings.HasSuffix(is.File, changed) {
			t.Errorf("%q changed: %v", changed, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoSources: an open set has at least one source.
func TestNoSources(t *testing.T) {
	if set, err := evidence.Open(t.Context(), nil, evidence.Options{}); set != nil || err == nil ||
		err.Error() != "no source was given" {
		t.Errorf("%v, %v", set, err)
	}
}

// TestBadSourceInAFolder: of a folder with one source per member, what can be read is read, and the others are named by
// their own path.
func TestBadSourceInAFolder(t *testing.T) {
	dir := filepath.Dir(furnished(t).Close(5, 2))
	bad := filepath.Join(dir, "notes.db")
	if err := os.WriteFile(bad, []byte("some text"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, evidence.Spec{Where: dir})
	if len(s.Failed) != 1 || s.Failed[0].Spec.Where != bad || !slices.Equal(labels(s), []string{"node1 data-dir"}) {
		t.Errorf("failed %+v, read %q", s.Failed, labels(s))
	}
}

// TestConnectedIsCalled: a caller hears of each connection that a client makes.
func TestConnectedIsCalled(t *testing.T) {
	m := &runningMember{id: 1, list: []*pb.Member{{ID: 1, Name: "node1"}}}
	where := m.serve(t)
	var n atomic.Int64
	access := evidence.Access{DialTimeout: 2 * time.Second, Connected: func() { n.Add(1) }}
	list, err := access.Members(t.Context(), []string{where})
	if err != nil || len(list) != 1 || list[0].URL != where || n.Load() != 1 {
		t.Errorf("%v, %v, %d connections", list, err, n.Load())
	}
}

// TestSnapshotOfAVeryOldMember: before 3.4 the raft index that a server tells is what it has applied.
func TestSnapshotOfAVeryOldMember(t *testing.T) {
	old := &runningMember{id: 1, committed: 60, version: "3.3.27", db: storedAt(t, 58), untold: true}
	m := open(t, evidence.Spec{Where: old.serve(t)}).Members[0]
	if m.AppliedMin != 60 || m.AppliedMax != 60 || m.Commit != 60 {
		t.Errorf("applied %d to %d, committed %d", m.AppliedMin, m.AppliedMax, m.Commit)
	}
}

// TestEndpointThatFails: each step on the way to the list of members or to a snapshot gives its own reason.
func TestEndpointThatFails(t *testing.T) {
	where := (&runningMember{}).serve(t)
	half := evidence.Access{User: "root", DialTimeout: 2 * time.Second}
	for name, ask := range map[string]func() error{
		"list":     func() error { _, err := half.Members(t.Context(), []string{where}); return err },
		"probe":    func() error { return half.Probe(t.Context(), where) },
		"dial":     func() error { _, err := half.Dial(t.Context(), []string{where}); return err },
		"snapshot": func() error { return openError(t, where, half) },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), "--user needs NAME:PASSWORD") {
			t.Errorf("%s: %v", name, err)
		}
	}
	var bad *evidence.SourceError
	if err := openError(t, "http://", evidence.Access{}); !errors.As(err, &bad) || bad.Found != "no endpoint" {
		t.Errorf("no host: %v", err)
	}
	silent := &runningMember{mute: true}
	access := evidence.Access{DialTimeout: 2 * time.Second}
	_, err := access.Members(t.Context(), []string{silent.serve(t)})
	if err == nil || !strings.Contains(err.Error(), "does not list its members") {
		t.Errorf("a server that refuses the list: %v", err)
	}
	broken := &runningMember{id: 1, committed: 60, version: "3.6.0", cutShort: true, db: storedAt(t, 60)}
	broken.applied.Store(60)
	if err := openError(t, broken.serve(t), access); err == nil || !strings.Contains(err.Error(), "does not send a") {
		t.Errorf("a snapshot that ends early: %v", err)
	}
}

// openError opens one endpoint and returns why it was not opened.
func openError(t *testing.T, where string, access evidence.Access) error {
	t.Helper()
	set, err := evidence.Open(t.Context(), []evidence.Spec{{Where: where}}, evidence.Options{Access: access})
	if set != nil {
		_ = set.Close()
	}
	return err
}

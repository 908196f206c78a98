package watch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// fake is a member in memory: the history of a cluster that it has applied up to some index, and what it got wrong.
type fake struct {
	id      uint64
	cluster uint64
	at      string
	learner bool
	applied uint64
	compact int64
	version string
	down    bool
	// lacks are indexes that had no effect here, alters those whose value is another one; auth is added to the auth
	// revision.
	lacks, alters map[uint64]bool
	auth          uint64
	authOff       error
	// errors are in the status; alarmed counts requests for alarms, hashed those for a hash, streamed those for the
	// auth bucket, connected connections.
	errors                    []string
	alarmed, hashed, streamed int
	connected                 int64
	// alone is a member that knows no leader, authAsked how often its auth was asked for.
	alone     bool
	authAsked int
	// names are what it lists, node1 to node3 if nil.
	names map[uint64]string
}

func member(id uint64) *fake {
	return &fake{id: id, cluster: 7, at: fmt.Sprintf("http://n%d:2379", id), version: "3.5.35", lacks: map[uint64]bool{}, alters: map[uint64]bool{}}
}

func (f *fake) rev(upTo uint64) int64 {
	rev := int64(upTo) + 1
	for i := range f.lacks {
		if i <= upTo {
			rev--
		}
	}
	return rev
}

var errDown = errors.New("connection refused")

func (f *fake) Endpoint() string { return f.at }
func (f *fake) Close() error     { return nil }
func (f *fake) Status(context.Context) (Status, error) {
	if f.down {
		return Status{}, errDown
	}
	leader := uint64(1)
	if f.alone {
		leader = 0
	}
	return Status{ID: f.id, Cluster: f.cluster, Version: f.version, Revision: f.rev(f.applied), Applied: f.applied,
		Term: 2, Learner: f.learner, Leader: leader, Errors: f.errors}, nil
}

func (f *fake) HashKV(_ context.Context, rev int64) (Hash, error) {
	f.hashed++
	if rev < f.compact {
		return Hash{}, rpctypes.ErrCompacted
	}
	if rev > f.rev(f.applied) {
		return Hash{}, rpctypes.ErrFutureRev
	}
	h := uint32(f.compact * 31)
	for i := uint64(1); i <= f.applied && f.rev(i) <= rev; i++ {
		if f.lacks[i] {
			continue
		}
		v := uint32(i)
		if f.alters[i] {
			v++
		}
		h = h*1000003 + v
	}
	return Hash{Hash: h, Compact: f.compact}, nil
}

func (f *fake) Keys(_ context.Context, rev int64) (int64, error) { return rev - 1, nil }
func (f *fake) AuthStatus(context.Context) (Auth, error) {
	f.authAsked++
	return Auth{Enabled: true, Revision: 5 + f.auth}, f.authOff
}
func (f *fake) AuthBucket(ctx context.Context) (Auth, error) {
	f.streamed++
	return f.AuthStatus(ctx)
}
func (f *fake) Because(_ context.Context, err error) error { return err }
func (f *fake) Connections() int64                         { return f.connected }
func (f *fake) Alarms(context.Context) (map[uint64][]string, error) {
	f.alarmed++
	return map[uint64][]string{1: {"NOSPACE"}}, nil
}
func (f *fake) Names(context.Context) (map[uint64]string, error) {
	if f.names != nil {
		return maps.Clone(f.names), nil
	}
	return map[uint64]string{1: "node1", 2: "node2", 3: "node3"}, nil
}
func (f *fake) Metrics(context.Context) ([]byte, error) {
	if f.down {
		return nil, errDown
	}
	return []byte("etcd_server_has_leader 1\n"), nil
}
func (f *fake) Save(_ context.Context, file string) error {
	if f.down {
		return errDown
	}
	return os.WriteFile(file, []byte(f.Endpoint()), 0o600)
}

func cluster() ([]*fake, []Member) {
	fs := []*fake{member(1), member(2), member(3)}
	return fs, []Member{fs[0], fs[1], fs[2]}
}

func watcher(ms []Member, o Options) *Watcher {
	o.Members = ms
	w := New(o)
	w.ask.pause = 0
	return w
}

// rounds runs n rounds, each after step, with content compared in each.
func rounds(w *Watcher, n int, step func(i int)) (all []Event) {
	for i := range n {
		step(i)
		w.hashed, w.bucket = time.Time{}, time.Time{}
		_, es := w.Round(context.Background())
		all = append(all, es...)
	}
	return all
}

// A cluster under load whose members lag, restart, go away, compact at different times and change rights raises
// nothing.
func TestNoFalseAlarm(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		fs, ms := cluster()
		w := watcher(ms, Options{BucketInterval: time.Second})
		top := uint64(10)
		changing := -1
		events := rounds(w, 40, func(int) {
			top += r.Uint64N(30) * r.Uint64N(2)
			for _, f := range fs {
				f.down = r.IntN(10) == 0
				if !f.down && r.IntN(4) > 0 {
					f.applied = max(f.applied, top-min(top, r.Uint64N(6)*r.Uint64N(2)))
				}
				if c := f.rev(f.applied) - int64(r.IntN(50)); c > f.compact && r.IntN(3) == 0 {
					f.compact = c
				}
			}
			// A change of rights reaches the members in one round and the others in the next one.
			if changing >= 0 {
				for _, f := range fs {
					f.auth = fs[changing].auth
				}
				changing = -1
			} else if r.IntN(5) == 0 {
				changing = r.IntN(3)
				fs[changing].auth++
			}
			version := []string{"3.5.35", "3.6.16"}[r.IntN(2)]
			fs[r.IntN(3)].version = version
		})
		if len(events) > 0 {
			t.Fatalf("seed %d: %+v", seed, events)
		}
	}
}

// Each kind of divergence is raised in few rounds, names the member, and is over when the members agree again.
func TestRaised(t *testing.T) {
	for name, c := range map[string]struct {
		break_ func(f *fake)
		mend   func(f *fake)
		kind   Kind
	}{
		"altered value": {func(f *fake) { f.alters[5] = true }, func(f *fake) { f.alters = nil }, KindHash},
		"skipped entry": {func(f *fake) { f.lacks[f.applied] = true }, func(f *fake) { f.lacks = nil }, KindRevision},
		"auth replay":   {func(f *fake) { f.auth = 2 }, func(f *fake) { f.auth = 0 }, KindAuth},
	} {
		for _, idle := range []bool{false, true} {
			fs, ms := cluster()
			w := watcher(ms, Options{})
			step := func(int) {
				for _, f := range fs {
					if !idle || f.applied == 0 {
						f.applied += 20
					}
				}
			}
			if es := rounds(w, 4, step); len(es) > 0 {
				t.Fatalf("%s: before: %+v", name, es)
			}
			c.break_(fs[1])
			es := rounds(w, 4, step)
			want := c.kind
			if want == KindRevision && !idle { // the entries since then hide it, and content tells
				want = KindHash
			}
			if !slices.ContainsFunc(es, func(e Event) bool {
				return e.Kind == want && slices.Equal(e.Members, []string{"node2"}) && e.Detail != "" && !e.Over
			}) {
				t.Errorf("%s, idle %v: %+v", name, idle, es)
			}
			if len(w.Open()) == 0 {
				t.Errorf("%s: nothing is open", name)
			}
			c.mend(fs[1])
			if rounds(w, kept+2, step); len(w.Open()) > 0 {
				t.Errorf("%s: still open: %+v", name, w.Open())
			}
		}
	}
}

// Two members that differ are both named: there is no majority.
func TestNoMajority(t *testing.T) {
	fs, ms := cluster()
	w := watcher(ms[:2], Options{})
	fs[1].alters[3] = true
	es := rounds(w, 3, func(int) { fs[0].applied += 5; fs[1].applied += 5 })
	if len(es) != 1 || !slices.Equal(es[0].Members, []string{"node1", "node2"}) {
		t.Errorf("%+v", es)
	}
}

// What has been raised stays raised while it cannot be compared.
func TestNotComparedIsNotOver(t *testing.T) {
	fs, ms := cluster()
	w := watcher(ms, Options{})
	fs[2].alters[3] = true
	rounds(w, 3, func(int) {
		for _, f := range fs {
			f.applied += 5
		}
	})
	es := rounds(w, 3, func(int) { fs[1].down, fs[2].down = true, true })
	if len(es) > 0 || len(w.Open()) != 1 {
		t.Errorf("%+v, open %+v", es, w.Open())
	}
}

// Evidence and hook: the folder is new, the hook gets the event as data and never as code.
func TestEvidenceAndHook(t *testing.T) {
	dir := t.TempDir()
	hook := filepath.Join(dir, "hook")
	t.Setenv("ETCD_MEDIC_USER", "root:secret")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nprintf '%s|%s|%s|%s\\n' \"$ETCD_MEDIC_EVENT$ETCD_MEDIC_USER\" "+
		"\"$ETCD_MEDIC_KIND\" \"$ETCD_MEDIC_MEMBERS\" \"$#\" >> "+dir+"/said\ncat >> "+dir+"/said\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	fs, ms := cluster()
	w := watcher(ms, Options{Keep: filepath.Join(dir, "kept"), Hook: hook})
	fs[0].names = map[uint64]string{1: "a", 2: "$(touch " + dir + "/pwned); rm x", 3: "c"}
	fs[1].auth = 2
	fs[2].down = true
	rounds(w, 3, func(int) { fs[0].applied, fs[1].applied = 9, 9 })
	b, err := os.ReadFile(filepath.Join(dir, "said"))
	if err != nil || !strings.HasPrefix(string(b), "diverged|auth|") ||
		!strings.Contains(string(b), "|0\n{\"kind\":\"auth\"") {
		t.Errorf("%s, %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "pwned")); err == nil {
		t.Error("a shell has read the member's name")
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "kept", "*", "*"))
	var names []string
	for _, k := range kept {
		names = append(names, filepath.Base(k))
	}
	if !slices.Equal(names, []string{"1-n1_2379.db", "1-n1_2379.metrics.txt", "2-n2_2379.db", "2-n2_2379.metrics.txt",
		"event.json", "hashes.json", "next.txt", "round.json"}) {
		t.Errorf("%q", names)
	}
	next, err := os.ReadFile(filepath.Join(filepath.Dir(kept[0]), "next.txt"))
	if want := "ssh -- n1 'etcd-medic collect --yes --name a -o -' > a.tar.zst\n"; err != nil ||
		!strings.Contains(string(next), want) || strings.Contains(string(next), "$(") {
		t.Errorf("%s, %v", next, err)
	}
}

// TestParting finds the first revision at which contents differ, with few questions.
func TestParting(t *testing.T) {
	for _, at := range []uint64{3, 4, 500, 998, 1000} {
		fs, ms := cluster()
		for _, f := range fs {
			f.applied, f.compact = 1000, 3
		}
		fs[1].alters = map[uint64]bool{at: true}
		w := watcher(ms, Options{})
		r, _ := w.Round(context.Background())
		p := w.ask.parting(context.Background(), &r)
		if p.Differ != int64(at)+1 || p.Note != "" || len(p.At) > 12 {
			t.Errorf("altered at index %d: %d equal, %d differ, %d questions, %s", at, p.Equal, p.Differ, len(p.At),
				p.Note)
		}
		fs[1].compact = 4
		if p := w.ask.parting(context.Background(), &r); p.Note == "" {
			t.Error("members compacted to different revisions were compared")
		}
		fs[1].alters, fs[1].compact = nil, 3
		if p := w.ask.parting(context.Background(), &r); p.Differ != 0 || p.Equal != 1001 || len(p.At) != 1 {
			t.Errorf("nothing differs: %+v", p)
		}
	}
}

// TestAliveWhileKeeping: a supervisor that asks for health does not end a watch that saves large snapshots.
func TestAliveWhileKeeping(t *testing.T) {
	_, ms := cluster()
	w := watcher(ms, Options{})
	w.last = time.Now().Add(-5 * time.Minute)
	if w.Alive() {
		t.Error("no round for five minutes, and alive")
	}
	if w.setBusy(true); !w.Alive() {
		t.Error("not alive while evidence is kept")
	}
	if w.setBusy(false); !w.Alive() {
		t.Error("not alive after evidence was kept")
	}
}

// Once is for timers: it raises what lasts, and not what a lagging member looks like.
func TestOnce(t *testing.T) {
	fs, ms := cluster()
	for _, f := range fs {
		f.applied = 20
	}
	fs[2].applied = 15
	r, es, err := watcher(ms, Options{}).Once(context.Background(), 0)
	if err != nil || len(es) > 0 || !Compared(&r) {
		t.Errorf("%+v, %v", es, err)
	}
	fs[0].auth = 1
	fs[2].applied = 20
	if _, es, err = watcher(ms, Options{}).Once(context.Background(), 0); err != nil || len(es) != 1 ||
		es[0].Kind != KindAuth {
		t.Errorf("%+v, %v", es, err)
	}
	fs[1].down = true
	if r, _, err = watcher(ms, Options{}).Once(context.Background(), 0); err != nil || Compared(&r) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUnasked: members that the cluster lists and the watch does not ask are named, and the others are not all members
// that agree. A member that does not answer may be one of them. One that is added later is noticed, and logged once.
func TestUnasked(t *testing.T) {
	fs, ms := cluster()
	for _, f := range fs {
		f.applied = 20
	}
	var log bytes.Buffer
	w := watcher(ms[:2], Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	r, es, err := w.Once(t.Context(), 0)
	if err != nil || len(es) > 0 || Compared(&r) || !slices.Equal(r.Unasked, []string{"node3"}) {
		t.Errorf("%+v, %v, %v", r, es, err)
	}
	fs[0].names = map[uint64]string{1: "node1", 2: "node2"}
	if r, _ := w.Round(t.Context()); r.Unasked != nil {
		t.Errorf("all are asked: %+v", r)
	}
	fs[0].names[0xab], fs[1].down = "", true
	if r, _ := w.Round(t.Context()); r.Unasked != nil {
		t.Errorf("one does not answer: %+v", r)
	}
	fs[1].down = false
	if r, _ := w.Round(t.Context()); !slices.Equal(r.Unasked, []string{"ab"}) {
		t.Errorf("one was added and has no name yet: %+v", r)
	}
	if n := strings.Count(log.String(), "members that are not watched"); n != 2 {
		t.Errorf("logged %d times:\n%s", n, log.String())
	}
}

// TestNothingToCompareWith: a member whose content is compared with no other one does not agree.
func TestNothingToCompareWith(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fs []*fake)
		why    string
	}{
		"a second address of a member": {func(fs []*fake) { fs[2].id = 2 }, "answers here and at http://n2:2379"},
		"another cluster":              {func(fs []*fake) { fs[0].cluster = 9 }, "cluster 9, and the watch compares cluster 7"},
		"another version": {func(fs []*fake) { fs[1].version, fs[1].alters[3] = "3.6.16", true },
			"no other member with a hash has version 3.6.16"},
		"another compaction": {func(fs []*fake) { fs[1].compact = 5 }, "is compacted to revision 5"},
		"no compaction":      {func(fs []*fake) { fs[0].compact, fs[2].compact, fs[1].compact = 5, 5, -1 }, "was never compacted"},
		"no other voter":     {func(fs []*fake) { fs[0].learner, fs[1].learner = true, true }, "no other member"},
		"no other answers":   {func(fs []*fake) { fs[0].down, fs[1].down = true, true }, "no other member answered"},
	} {
		fs, ms := cluster()
		for i, f := range fs {
			f.applied, f.at = 20, fmt.Sprintf("http://n%d:2379", i+1)
		}
		c.change(fs)
		r, es, err := watcher(ms, Options{}).Once(context.Background(), 0)
		said := ""
		for i := range r.Members {
			if said += r.NotCompared(i); r.Members[i].Err != nil {
				said += r.Members[i].Err.Error()
			}
		}
		if err != nil || len(es) > 0 || Compared(&r) || !strings.Contains(said, c.why) {
			t.Errorf("%s: %+v, %q, %v", name, es, said, err)
		}
	}
}

func get(t *testing.T, w *Watcher, path string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	b, err := io.ReadAll(rec.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Code, string(b)
}

func TestHandler(t *testing.T) {
	fs, ms := cluster()
	w := watcher(ms, Options{})
	if code, _ := get(t, w, "/healthz"); code != 503 {
		t.Errorf("before the first round: %d", code)
	}
	fs[1].auth, fs[2].down = 3, true
	fs[0].errors = []string{"memberID:1 alarm:NOSPACE "}
	rounds(w, 3, func(int) { fs[0].applied, fs[1].applied = 9, 9 })
	if code, _ := get(t, w, "/healthz"); code != 200 {
		t.Errorf("%d", code)
	}
	_, text := get(t, w, "/metrics")
	for _, want := range []string{`etcd_medic_watch_divergence{kind="auth"} 1`,
		`etcd_medic_watch_divergence{kind="hash"} 0`, `etcd_medic_watch_member_up{endpoint="http://n3:2379"} 0`,
		`etcd_medic_watch_member_auth_revision{endpoint="http://n2:2379",member="node2"} 8`,
		`etcd_medic_watch_member_alarm{alarm="NOSPACE",endpoint="http://n1:2379",member="node1"} 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("missing %s in\n%s", want, text)
		}
	}
	fs[1].down = true
	rounds(w, 1, func(int) {})
	if _, after := get(t, w, "/metrics"); strings.Contains(after, `member_auth_revision{endpoint="http://n2:2379"`) {
		t.Error("a member that is away keeps its auth revision")
	}
	fs[1].down = false
	var open []Event
	if _, text = get(t, w, "/divergence"); json.Unmarshal([]byte(text), &open) != nil || len(open) != 1 ||
		open[0].Kind != KindAuth {
		t.Errorf("%s", text)
	}
}

// TestNeverComparedIsExported: what was never compared has the value 0, so that the alerts are raised for it too.
func TestNeverComparedIsExported(t *testing.T) {
	fs, ms := cluster()
	w := watcher(ms, Options{})
	never := func() (kinds []string) {
		_, text := get(t, w, "/metrics")
		for _, k := range []string{"hash", "auth"} {
			if strings.Contains(text, `etcd_medic_watch_last_compared_timestamp_seconds{kind="`+k+"\"} 0\n") {
				kinds = append(kinds, k)
			}
		}
		return kinds
	}
	fs[2].down = true
	w.Round(context.Background())
	if got := never(); !slices.Equal(got, []string{"hash", "auth"}) {
		t.Errorf("with a member that is away: %v", got)
	}
	fs[2].down, fs[1].authOff, w.hashed = false, errors.New("permission denied"), time.Time{}
	w.Round(context.Background())
	if got := never(); !slices.Equal(got, []string{"auth"}) {
		t.Errorf("without the right to ask for auth: %v", got)
	}
	fs[1].authOff = nil
	w.Round(context.Background())
	if got := never(); got != nil {
		t.Errorf("with all: %v", got)
	}
}

// TestMetricsAreListed holds testdata/metrics.txt against what is registered. .tools/rules reads that list to check
// alert rules and dashboard with Prometheus' own packages.
func TestMetricsAreListed(t *testing.T) {
	m := NewMetrics()
	ch := make(chan *prometheus.Desc, 100)
	m.registry.Describe(ch)
	close(ch)
	parts := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([\w,]*)\}`)
	var lines []string
	for d := range ch {
		f := parts.FindStringSubmatch(d.String())
		if f == nil {
			t.Fatalf("not understood: %s", d)
		}
		kind := "gauge"
		if strings.HasSuffix(f[1], "_total") {
			kind = "counter"
		}
		lines = append(lines, strings.TrimSpace(f[1]+" "+kind+" "+strings.ReplaceAll(f[2], ",", " ")))
	}
	slices.Sort(lines)
	b, err := os.ReadFile("testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(b), "\n")
	if want := strings.Join(lines, "\n") + "\n"; list != want {
		t.Errorf("testdata/metrics.txt should hold after its first line:\n%s", want)
	}
}

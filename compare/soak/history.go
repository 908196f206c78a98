package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/compare/evidence/evidencetest"
	"github.com/etcd-medic/etcd-medic/release"
)

// opPatience is how long one request may take. One that takes longer may have been applied or not; the history
// continues.
const opPatience = 3 * time.Second

// History is a cluster that lives through what its seed decides.
type History struct {
	t   testing.TB
	rng *rand.Rand
	s   Setup
	c   *clustertest.Cluster
	// only is the client that makes all requests, nil if each is made through a random member.
	only *clientv3.Client
	// dir holds what is taken from the cluster: backups and data dirs.
	dir string
	// binary is what each member runs; lagging are members that were stopped before others wrote, gone are removed
	// ones.
	lagging, gone map[int]bool
	learners      map[int]bool
	// hadLearner is true once the log adds a learner.
	hadLearner    bool
	leases        []clientv3.LeaseID
	extras        []Source
	older, live   map[string]string
	restored, led bool
	// moved is the member with a second peer URL, counted from 1; 0 if there is none.
	moved   int
	counter int
	backups int
	kube    kube
	authOn  bool
	// log says what was done, for people.
	log []string
	// Doubt says why the members may really differ, "" if the servers' own hashes agree.
	Doubt string
}

// Collected is the result of a history: stopped data dirs, and further sources that belong to them.
type Collected struct {
	Setup   Setup
	Members []Source
	Extras  []Source
	// Older and Live are copies of data dirs by member: one taken while the member was stopped in the middle of the
	// history, and one taken while it ran, the log first.
	Older, Live map[string]string
	// Restored is true if the members were restored from a backup on the way. Led is true if they ran other releases
	// before.
	Restored, Led bool
	Log           []string
	Doubt         string
}

// Make runs the history of a seed and returns copies of what it left, below dir.
func Make(t testing.TB, s Setup, dir string) *Collected {
	t.Helper()
	h := &History{t: t, rng: Rand(s.Seed, "history"), s: s, dir: dir, lagging: map[int]bool{}, gone: map[int]bool{},
		learners: map[int]bool{},
		older:    map[string]string{}, live: map[string]string{}}
	h.start()
	if s.Shape.Auth {
		h.enableAuth()
	}
	for round := range s.Rounds {
		h.burst(s.Burst)
		if h.rng.IntN(100) < s.CompactEvery {
			h.compact()
		}
		h.event(s.Shape.Events[h.rng.IntN(len(s.Shape.Events))])
		if round == s.Rounds/2 && h.rng.IntN(2) == 0 {
			h.olderCopy(h.any())
		}
		if h.s.Shape.Upgrade && round < 3 {
			h.upgrade()
		}
		if h.s.Shape.Downgrade && round < 2 {
			h.downgrade()
		}
	}
	h.purge()
	h.liveCopy(h.any())
	h.burst(5 + h.rng.IntN(s.Burst))
	h.end()
	return h.collect()
}

func (h *History) say(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *History) start() {
	s := h.s
	args := []string{"--heartbeat-interval=50", "--election-timeout=500", fmt.Sprintf("--max-wals=%d", s.MaxWALs),
		fmt.Sprintf("--max-snapshots=%d", max(1, s.MaxWALs-1))}
	if s.has(release.FlagBcryptCost) {
		args = append(args, "--bcrypt-cost=4")
	}
	if slices.Contains(s.Shape.Events, "refuse") {
		args = append(args, "--strict-reconfig-check=false") // else the server refuses before it proposes
	}
	if s.Shape.Quota > 0 {
		args = append(args, fmt.Sprintf("--quota-backend-bytes=%d", s.Shape.Quota))
	}
	if !s.Shape.Upgrade && !s.Shape.Downgrade { // releases name these flags differently
		switch {
		case s.has(release.FlagCatchup):
			args = append(args, fmt.Sprintf("--snapshot-catchup-entries=%d", s.CatchUp), "--compaction-batch-limit=5")
		case s.has(release.FlagCatchupExperimental):
			args = append(args, fmt.Sprintf("--experimental-snapshot-catchup-entries=%d", s.CatchUp),
				"--experimental-compaction-batch-limit=5")
		}
	}
	h.say("%s on %s, %d members, snapshot count %d, segments of %d bytes, %s", s.Shape.Name, s.Line, s.Shape.Members,
		s.SnapshotCount, s.SegmentBytes, strings.Join(args, " "))
	h.c = clustertest.Start(h.t, clustertest.Server(h.t, s.Line), s.Shape.Members,
		clustertest.Options{SnapshotCount: s.SnapshotCount, Args: args,
			Env: []string{fmt.Sprintf("TEST_SEGMENT_BYTES=%d", s.SegmentBytes)}})
}

// context bounds one request.
func (h *History) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), opPatience)
}

// voters are the running members that take requests.
func (h *History) voters() []int {
	var out []int
	for i := range h.c.Size() {
		if h.c.Running(i) && !h.gone[i] && !h.learners[i] {
			out = append(out, i)
		}
	}
	return out
}

// any draws a running voter. The draw does not depend on which members run.
func (h *History) any() int {
	v, n := h.voters(), h.rng.IntN(1<<20)
	if len(v) == 0 {
		return 0
	}
	return v[n%len(v)]
}

// client returns a client of a running voter.
func (h *History) client() *clientv3.Client {
	if h.only != nil {
		return h.only
	}
	return h.c.Client(h.any())
}

// compact compacts a few revisions below the current one, and waits for it or not.
func (h *History) compact() {
	back, physical := int64(h.rng.IntN(10)), h.rng.IntN(2) == 0
	cli := h.client()
	ctx, cancel := h.context()
	defer cancel()
	r, err := cli.Get(ctx, "x")
	if err != nil {
		h.say("compact: %v", err)
		return
	}
	var opts []clientv3.CompactOption
	if physical {
		opts = append(opts, clientv3.WithCompactPhysical())
	}
	at := max(1, r.Header.Revision-back)
	_, err = cli.Compact(ctx, at, opts...)
	h.say("compact at %d of %d, physical %t: %v", at, r.Header.Revision, physical, err)
}

// purge starts members again, one after the other: etcd deletes old segments and snapshots when it starts, and then
// twice a minute.
func (h *History) purge() {
	for _, i := range h.voters() {
		if h.rng.IntN(3) > 0 {
			h.restart(i)
		}
		h.burst(3)
	}
}

func (h *History) restart(i int) {
	h.say("restart %s", h.c.Name(i))
	h.c.Restart(i)
	h.settle()
}

// settle waits until the running members follow one leader.
func (h *History) settle() { h.c.Leader() }

// end stops the members in one of the ways in which people stop them before they copy data dirs.
func (h *History) end() {
	how := h.rng.IntN(4)
	if !h.s.Shape.Defect {
		h.checkHashes()
	}
	h.say("end %d", how)
	switch how {
	case 0: // all at one point
		h.c.WaitApplied()
		h.c.StopAll()
	case 1: // one after the other, with writes in between as long as there is a quorum
		for n, i := range h.voters() {
			h.c.Stop(i)
			if left := h.voters(); n == 0 && len(left) > h.members()/2 {
				h.settle()
				h.burst(1 + h.rng.IntN(12))
				h.lagging[i] = true
			}
		}
	case 2: // at once, in the middle of writes, without a chance to save anything
		h.compact()
		wait := h.crowd(20)
		for _, i := range h.voters() {
			h.c.Kill(i)
		}
		wait()
	case 3: // killed after the databases were committed
		h.c.WaitApplied()
		time.Sleep(300 * time.Millisecond)
		for _, i := range h.voters() {
			h.c.Kill(i)
		}
	}
	h.c.StopAll()
}

// members counts the voters of the cluster, running or not.
func (h *History) members() int {
	n := 0
	for i := range h.c.Size() {
		if !h.gone[i] && !h.learners[i] {
			n++
		}
	}
	return n
}

// checkHashes asks the servers for their hashes: if these differ, the history is not free of faults. Releases whose
// hashes differ without reason are not asked.
func (h *History) checkHashes() {
	v := h.voters()
	if len(v) < 2 {
		return
	}
	h.c.WaitApplied()
	time.Sleep(200 * time.Millisecond) // compactions end in the background
	type answer struct {
		hash             uint32
		compact, current int64
	}
	var all []answer
	for _, i := range v {
		ctx, cancel := h.context()
		r, err := h.c.Client(i).HashKV(ctx, h.c.Endpoint(i), 0)
		cancel()
		if err != nil {
			return
		}
		all = append(all, answer{r.Hash, r.CompactRevision, r.Header.Revision})
	}
	for k := range all {
		if all[k].current == all[0].current && all[k].compact == all[0].compact && all[k].hash != all[0].hash &&
			!h.s.has(release.ResumedHashDiffers) {
			h.Doubt = fmt.Sprintf("the servers' own hashes differ: %v", all)
		}
	}
}

// collect copies the data dirs.
func (h *History) collect() *Collected {
	out := &Collected{Setup: h.s, Extras: h.extras, Doubt: h.Doubt, Older: h.older, Live: h.live, Restored: h.restored,
		Led: h.led}
	for i := range h.c.Size() {
		dst := filepath.Join(h.dir, h.c.Name(i))
		if err := evidencetest.CopyTo(h.c.DataDir(i), dst); err != nil {
			h.t.Fatal(err)
		}
		src := Source{Name: h.c.Name(i), Path: dst, Lags: h.lagging[i]}
		if h.gone[i] {
			src.Name, src.Aged = src.Name+"-removed", true
			out.Extras = append(out.Extras, src)
			continue
		}
		out.Members = append(out.Members, src)
	}
	all := slices.Concat(out.Members, out.Extras)
	markBehind(all)
	out.Members, out.Extras = all[:len(out.Members)], all[len(out.Members):]
	out.Log = h.log
	return out
}

// KeepLog writes what was done next to kept data.
func (c *Collected) KeepLog(dir string) error {
	return os.WriteFile(filepath.Join(dir, historyFile), []byte(strings.Join(c.Log, "\n")+"\n"), 0o600)
}

// Package soak proves the diagnosis at production shape: it makes random histories on real etcd servers, damages copies
// of their data dirs in known ways, and compares each diagnosis with the known truth. `make soak SEEDS=A..B` runs it.
//
// A seed decides the shape, the release and every operation of its history, and which faults are applied to the copies.
// How fast the servers are is not decided by the seed, so two runs of one seed differ in indexes and revisions, never
// in kind.
//
// Only tests may import it.
package soak

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/etcd-medic/etcd-medic/release"
)

// maxSeeds bounds one run.
const maxSeeds = 10000

// Lines are the releases that histories run on, by seed. Releases that most users run come twice.
var Lines = []string{"3.6.16", "3.5.35", "3.7.3", "3.4.3", "3.6.16", "3.5.35", "3.3.18"}

// Shape is what a history is made to show.
type Shape struct {
	Name    string
	Members int
	// Kube makes every write a guarded transaction below /registry/, as kube-apiserver writes.
	Kube bool
	// Auth turns auth on early and changes users and roles all the time.
	Auth bool
	// Events are what happens between bursts of writes, chosen at random.
	Events []string
	// Upgrade leads the cluster from 3.4 towards 3.7, Downgrade from 3.7 or 3.6 towards 3.5.
	Upgrade, Downgrade bool
	// Quota is --quota-backend-bytes, 0 for the server's default.
	Quota int
	// Defect is true if the servers have a real defect that such a history brings out: it is not free of faults.
	Defect bool
}

// shapes has no common divisor in length with Lines, so that consecutive seeds pair every shape with every release.
var shapes = []Shape{
	{Name: "mixed", Members: 3, Quota: 1 << 20, Events: []string{"restart", "kill", "pause", "defrag", "backup",
		"nospace", "move", "crowd"}},
	{Name: "kube", Members: 3, Kube: true, Events: []string{"restart", "kill", "backup", "lag", "move", "crowd"}},
	{Name: "single", Members: 1, Events: []string{"restart", "kill", "restart", "backup"}},
	{Name: "lag", Members: 3, Events: []string{"lag", "lag", "restart", "kill"}},
	{Name: "kube-single", Members: 1, Kube: true, Events: []string{"restart", "kill", "restart", "backup"}},
	{Name: "auth", Members: 3, Auth: true, Events: []string{"restart", "kill", "backup", "lag", "crowd", "noauth"}},
	{Name: "members", Members: 3, Events: []string{"learner", "promote", "remove", "restart", "refuse", "dismiss",
		"replace", "readdress"}},
	{Name: "restore", Members: 3, Events: []string{"restore", "restart", "backup", "force", "kill"}},
	{Name: "upgrade", Members: 3, Upgrade: true, Events: []string{"restart", "backup", "crowd"}},
	{Name: "five", Members: 5, Events: []string{"restart", "kill", "lag", "move", "refuse", "replace",
		"crowd", "force", "readdress"}},
	{Name: "kube-auth", Members: 3, Kube: true, Auth: true, Events: []string{"restart", "backup", "kill"}},
	{Name: "kube-members", Members: 3, Kube: true, Events: []string{"lag", "restart", "remove", "learner", "promote",
		"refuse", "replace", "dismiss", "force"}},
	{Name: "defect", Members: 3, Auth: true, Defect: true, Events: []string{"restart", "kill", "kill", "none"}},
}

// Setup is what a seed decides before anything runs.
type Setup struct {
	Seed  uint64
	Shape Shape
	Line  string
	// SnapshotCount and SegmentBytes are small, so that logs are purged when a member starts again.
	SnapshotCount, SegmentBytes, CatchUp int
	MaxWALs                              int
	Rounds, Burst                        int
	// CompactEvery is the chance, in percent, that a round ends with a compaction.
	CompactEvery int
}

// has reports whether the servers of the history follow a rule.
func (s *Setup) has(r *release.Rule) bool { return release.Of(s.Line).Has(r).Certain() }

// SetupOf returns what the seed decides.
func SetupOf(seed uint64) Setup {
	rng := Rand(seed, "setup")
	s := Setup{Seed: seed, Shape: shapes[seed%uint64(len(shapes))], Line: Lines[seed%uint64(len(Lines))]}
	s.SnapshotCount = pick(rng, 10, 20, 50, 100, 1000)
	s.SegmentBytes = pick(rng, 8<<10, 16<<10, 64<<10)
	s.CatchUp = pick(rng, 1, 5, 100)
	s.MaxWALs = pick(rng, 1, 1, 2, 5)
	s.Rounds, s.Burst = 3+rng.IntN(4), 15+rng.IntN(60)
	s.CompactEvery = pick(rng, 20, 60, 100)
	// Up to 3.4.3 a restart applies auth entries twice (etcd issue 11651): such a history is not free of faults.
	third := seed / uint64(len(shapes)) % 3
	switch s.Shape.Name { // these come in both ways of writing
	case "upgrade", "restore", "five":
		s.Shape.Kube = third == 1
	}
	if s.Shape.Upgrade && third == 2 {
		s.Shape.Name, s.Shape.Upgrade, s.Shape.Downgrade = "downgrade", false, true
		s.Shape.Kube = rng.IntN(2) == 0
		s.Line = pick(rng, "3.6.16", "3.7.3")
	}
	if s.Shape.Defect {
		s.Line = pick(rng, "3.4.3", "3.5.0")
		return s
	}
	if s.Shape.Auth && !s.has(release.IndexWithAuth) {
		s.Line = "3.4.23"
	}
	// etcdutl writes data dirs for 3.5 and later; learners came with 3.4.
	if !s.has(release.RestoreReplacesMembers) && s.Shape.Name == "restore" {
		s.Line = "3.5.35"
	}
	if !s.has(release.Learners) && strings.HasSuffix(s.Shape.Name, "members") {
		s.Line = "3.4.3"
	}
	if s.Shape.Upgrade {
		s.Line = "3.4.3"
	}
	return s
}

// Rand is a source of random numbers that depends on the seed and the purpose only.
func Rand(seed uint64, purpose string) *rand.Rand {
	h := uint64(14695981039346656037)
	for _, c := range []byte(purpose) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, h))
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// ParseSeeds reads A..B or A.
func ParseSeeds(s string) ([]uint64, error) {
	from, to, isRange := strings.Cut(s, "..")
	if !isRange {
		to = from
	}
	a, errA := strconv.ParseUint(from, 10, 32)
	b, errB := strconv.ParseUint(to, 10, 32)
	if errA != nil || errB != nil || b < a || b-a >= maxSeeds {
		return nil, fmt.Errorf("%q is not a range of at most %d seeds: want A..B", s, maxSeeds)
	}
	var out []uint64
	for n := a; n <= b; n++ {
		out = append(out, n)
	}
	return out, nil
}

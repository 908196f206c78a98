package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

var quorumPossible = described(Check{
	ID:    M05,
	Needs: NeedLog,
	Run:   runQuorumPossible,
})

func runQuorumPossible(in *Input) Result {
	m := in.Members.configurations().newest()
	if m == nil {
		return Result{Reason: "no source shows raft's configuration"}
	}
	ms := &m.Membership
	dead, up, behind, absent := in.Membership().voterCounts(m)
	if len(dead) == 0 {
		return Result{Outcome: Holds}
	}
	if !slices.ContainsFunc(ms.Voters, func(id dumplog.ID) bool { return published(in.Replay, ms, id) }) {
		return Result{Reason: "no voter has published itself yet: a new or freshly restored cluster"}
	}
	real := in.Membership().addedOrListed(dead)
	f := Finding{Kind: KindVoterNeverStarted, Severity: Critical, Class: ClassMembership,
		Members: in.Members.configurations().with(dead[0]), At: confIndex(m),
		Facts: Facts{About: real}}
	for _, id := range dead {
		f.Evidence = append(f.Evidence, Evidence{Member: m.Label(), Bucket: "members", Key: Bytes(id.String()),
			Field:    "peer URLs " + strings.Join(ms.PeerURLs[id], ","),
			Observed: "a voter without a name that never published itself", Expected: "a started member",
			Show: showDB(m, "members")})
	}
	need := ms.Quorum()
	f.Title = fmt.Sprintf("voter %s never started: %d voters, %d needed for a majority, %d have run", idList(dead),
		len(ms.Voters), need, up)
	switch {
	case up < need:
		f.Explanation = "a majority cannot be reached: no leader, no writes, and the member cannot be removed " +
			"through raft"
	case up-behind < need:
		f.Explanation = fmt.Sprintf("a majority needs every voter that has run; %d of them had not received this "+
			"configuration when copied (it was down or slow), and without it there is no leader", behind)
	case up-behind-absent < need && m.Commit <= f.At.Index:
		f.Facts.VotersAbsent = true
		f.Explanation = fmt.Sprintf("%d of the voters that have run are not among the sources, and nothing was "+
			"committed since the configuration changed: without them a majority cannot be reached, and there is no "+
			"leader", absent)
	default:
		f.Severity, f.Explanation = Warning, "the cluster still has a majority, but tolerates fewer failures until "+
			"the member is started or removed"
		f.Class = ""
	}
	if len(real) == 0 {
		f.Explanation += ". No entry of a log adds it, and no member list has it: the .snap file or the row that " +
			"names it may have been altered"
		f.Remedy = []Remedy{{Text: "ask the running members who belongs to the cluster, and remove no member that " +
			"they do not list as unstarted", Command: shell.Format("etcdctl member list -w table")}}
		return Result{Outcome: Violated, Findings: []Finding{f}}
	}
	f.Remedy = quorumRemedy(m, real[0].String(), up < need)
	return Result{Outcome: Violated, Findings: []Finding{f}}
}

// addedOrListed returns the members that an entry of a log adds, or that the member list of a source has. Others are
// named by raft's configuration alone, as one is that was written into a .snap file.
func (mb *Membership) addedOrListed(ids []dumplog.ID) []dumplog.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id dumplog.ID) bool {
		return !slices.ContainsFunc(mb.Members, func(o *evidence.Member) bool {
			ms := &o.Membership
			_, named := ms.PeerURLs[id]
			return named || slices.Contains(ms.Bucket, id) || slices.Contains(ms.V2, id) ||
				slices.ContainsFunc(mb.confChanges(o), func(c evidence.ConfEntry) bool { return c.Change.NodeID == id })
		})
	})
}

// voterCounts returns the voters of m's configuration that never started. It counts those that have run: how many of
// them know an older configuration than m, and how many more are not among the sources.
func (mb *Membership) voterCounts(m *evidence.Member) (dead []dumplog.ID, up, behind, absent int) {
	for _, id := range m.Membership.Voters {
		if !mb.hasRun(&m.Membership, id) {
			dead = append(dead, id)
			continue
		}
		up++
		switch {
		case mb.Members.configurations().knowsOlder(m, id.String()):
			behind++
		case !mb.Members.atHand(id):
			absent++
		}
	}
	return dead, up, behind, absent
}

// quorumRemedy restores a majority when the voters that have run are too few.
func quorumRemedy(m *evidence.Member, dead string, lost bool) []Remedy {
	remove := shell.Format("etcdctl member remove {}", dead)
	if !lost {
		return []Remedy{{Text: "start every voter that has a data dir (a lagging one catches up), then remove the " +
			"voter that never started", Command: remove}}
	}
	return []Remedy{
		{Text: "if a server can be brought up at the peer URL of the voter that never started, start it there with " +
			"--initial-cluster-state existing: that makes the majority; then the voter can be removed",
			Command: remove},
		{Text: "else start a copy of the data dir of " + m.Label() + " once with --force-new-cluster, which drops " +
			"all other voters from the configuration; then add new members",
			Command: shell.Format("etcd --force-new-cluster --data-dir <COPY>"),
			Risk:    "what only other members hold is lost",
			Precondition: "no other member of this cluster runs or is " +
				"ever started again"}}
}

// published reports whether a member has told the cluster its name and client URLs, which it does at every start. The
// entry shows that it ran even if nothing shows that it was committed.
func published(rp *replay.Result, ms *evidence.Membership, id dumplog.ID) bool {
	return ms.Started[id] || rp != nil && rp.Survey != nil && rp.Survey.Ran[id]
}

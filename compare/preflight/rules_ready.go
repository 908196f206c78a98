package preflight

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/release"
)

var membersDrift = described(Rule{
	ID: "P20", Level: Warns, Needs: theDB, Only: release.ConfChangeFromDB,
	Run: func(d *dir) *verdict {
		ms := &d.m.Membership
		switch {
		case len(ms.Bucket) == 0 || !d.m.HasDB():
			return nil
		case !ms.RaftKnown:
			return unknown("raft's configuration is not known")
		}
		v := &verdict{says: "bucket members differs from raft's configuration", server: ""}
		raft := append(slices.Clone(ms.Voters), ms.Learners...)
		for _, m := range d.m.DB.Members {
			id := dumplog.ID(m.ID)
			switch {
			case !slices.Contains(raft, id):
				v.evidence = append(v.evidence, d.atDB("members", id.String(), "a member", "not known to raft"))
			case m.IsLearner && ms.IsVoter(id):
				v.evidence = append(v.evidence, d.atDB("members", id.String(), "learner", "voter"))
			case !m.IsLearner && slices.Contains(ms.Learners, id):
				v.evidence = append(v.evidence, d.atDB("members", id.String(), "voter", "learner"))
			}
		}
		for _, id := range raft {
			if !slices.Contains(ms.Bucket, id) {
				v.evidence = append(v.evidence, d.atDB("members", id.String(), "absent", "a member, as raft says"))
			}
		}
		if len(v.evidence) == 0 {
			return nil
		}
		return v
	},
})

var hiddenVersion = described(Rule{
	ID: "P23", Level: Warns, Needs: theDB,
	Not: release.ClusterRequests,

	Run: func(d *dir) *verdict {
		if !d.m.HasDB() {
			return nil
		}
		have := release.Highest(lineOf(d.m.DB.Cluster.Version), lineOf(d.m.DB.Meta.StorageVersion))
		if seen, _ := d.clusterVersionSeen(); !have.Above(d.to.line()) || seen.Above(d.to.line()) {
			return nil
		}
		return &verdict{says: fmt.Sprintf("etcd 3.%d wrote the dir; etcd %s opens it silently and lowers the cluster "+
			"version", have.Minor(), d.to),
			evidence: []check.Evidence{d.atDB("cluster", "clusterVersion", d.m.DB.Cluster.Version,
				fmt.Sprintf("3.%d.0 or older", d.to.Minor))}}
	},
})

var raisesVersions = described(Rule{
	ID: "P21", Level: Changes, Needs: theDB,
	Run: func(d *dir) *verdict {
		if !d.m.HasDB() {
			return nil
		}
		have := lineOf(d.m.DB.Cluster.Version)
		if !d.to.line().Above(have) {
			return nil
		}
		return &verdict{says: fmt.Sprintf("the cluster version rises from 3.%d to 3.%d once every member runs it",
			have.Minor(), d.to.Minor),
			evidence: []check.Evidence{d.atDB("cluster", "clusterVersion", d.m.DB.Cluster.Version,
				fmt.Sprintf("3.%d.0 afterwards", d.to.Minor))}}
	},
})

var skipsLines = described(Rule{
	ID: "P22", Level: Warns,
	Run: func(d *dir) *verdict {
		have := d.m.Version.Release()
		if d.m.HasDB() {
			have = release.Highest(have, lineOf(d.m.DB.Cluster.Version))
		}
		switch {
		case !have.Known():
			return unknown("which version wrote the dir is not known")
		case !d.to.line().Above(have.Next()):
			return nil
		}
		return &verdict{says: fmt.Sprintf("from 3.%d to 3.%d a running cluster goes through each minor version",
			have.Minor(), d.to.Minor), server: "incompatible with current running cluster"}
	},
})

// ready returns what to do, in order.
func (d *dir) ready(r *Result) []string {
	var out []string
	violated := map[string]bool{}
	for _, o := range r.Rules {
		violated[o.Rule] = o.Outcome == check.Violated
	}
	for _, x := range advice {
		if violated[x.rule] && (x.not == nil || !d.to.Follows(x.not)) {
			out = append(out, x.text)
		}
	}
	if len(out) == 0 && r.Boots.Certain() {
		out = append(out, "take a backup (etcdctl snapshot save) and verify it before the first start")
	}
	return out
}

// advice is what to do about a violated rule.
var advice = []struct {
	rule string
	// not excludes servers that follow this rule; nil means no restriction.
	not  *release.Rule
	text string
}{
	{"P02", nil, "do not start it: reseed the member from a healthy one, or rebuild the database from its readable " +
		"pages"},
	{"P04", nil, "export the v2 keys with etcd 3.5 (etcdctl v2) and remove them before going to 3.6; 3.7 no longer " +
		"reads them"},
	{"P05", nil, "treat the member as one that lost its data: remove it, move the dir aside, add it again and start " +
		"it empty"},
	{"P06", nil, "run the minor version that wrote the dir, or downgrade the whole cluster first: etcdctl downgrade " +
		"enable, " +
		"then replace the members one by one"},
	{"P07", nil, "do not start it: repair the log on a copy, or reseed the member from a healthy one"},
	{"P08", nil, "reseed the member from a healthy one: the log does not reach back to the raft snapshot"},
	{"P10", nil, "run the minor version that wrote the dir, or downgrade the whole cluster first: etcdctl downgrade " +
		"enable " +
		"(3.5.23 and 3.6 on); from 3.3 and 3.4 only a restore leads down"},
	{"P11", nil, "treat the member as one that lost its data: remove it, move the dir aside, add it again and start " +
		"it empty"},
	{"P13", release.V2Decoded, "let the old version take a raft snapshot after the v2 requests first (start it with " +
		"a " +
		"small --snapshot-count and write), then stop it and check again"},
	{"P13", release.V2Executed, "v2 writes must end: switch the clients to v3 (QGET without a path is /health up to " +
		"3.4, and ends with the upgrade to 3.5), let the old version take a raft snapshot after the last one"},
	{"P14", nil, "start and stop the version that wrote the dir once more, so that everything is applied"},
	{"P17", nil, "add the member again (etcdctl member add) and start it with an empty dir"},
	{"P18", nil, "the dir belongs to another member or cluster: give each member its own dir"},
	{"P19", nil, "make sure that another member has the entries before this one starts"},
	{"P20", nil, "compare etcdctl member list with etcd-medic inspect on every member before going to 3.7; let " +
		"3.5.26 or later drop zombies at its start, or repair a stopped member with etcd-medic repair meta " +
		"--members-from-raft; never etcdctl member remove on 3.6, which ends every server"},
	{"P23", nil, "do not: nothing stops this server, and it damages the dir; run the minor version that wrote it"},
	{"P22", nil, "upgrade the cluster one minor at a time"},
	{"P21", nil, "take a backup and verify it first: the way back is a downgrade or a restore"},
}

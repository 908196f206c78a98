package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

var clusterVersion = described(Rule{
	ID: "P10", Level: Stops, Needs: theLog | theMembers,
	Run: func(d *dir) *verdict {
		v, at := d.clusterVersionSeen()
		if !v.Above(d.to.Release()) || d.downgradeAllowed(v) {
			return nil
		}
		server := "invalid downgrade; server version is lower than determined cluster version"
		if !d.to.Follows(release.Learners) {
			server = fmt.Sprintf("cluster cannot be downgraded (current version: %s is lower than determined cluster "+
				"version: 3.%d)", d.to, v.Minor())
		}
		return &verdict{says: fmt.Sprintf("the cluster version is 3.%d", v.Minor()), server: server, evidence: at}
	},
})

// clusterVersionSeen returns the highest cluster version that a server of this version reads at its start, and where it
// is.
func (d *dir) clusterVersionSeen() (release.Version, []check.Evidence) {
	best, at := release.Version{}, []check.Evidence(nil)
	take := func(v string, e check.Evidence) {
		if n := lineOf(v); release.Highest(best, n) != best {
			best, at = n, []check.Evidence{e}
		}
	}
	expected := fmt.Sprintf("3.%d.0 or older", d.to.Minor)
	if d.to.Follows(release.MembersFromDB) {
		if d.m.HasDB() {
			take(d.m.DB.Cluster.Version, d.atDB("cluster", "clusterVersion", d.m.DB.Cluster.Version, expected))
		}
	} else if d.snap != nil && d.snap.V2 != nil {
		take(d.snap.V2.Version, check.Evidence{Member: d.m.Label(), File: d.snap.File, Field: "v2 store /0/version",
			Observed: d.snap.V2.Version, Expected: expected})
	}
	for _, e := range d.replayed() {
		switch {
		case e.v2 != nil && e.v2.Path == "/0/version" && d.to.Follows(release.V2Decoded):
			take(e.v2.Val, d.atEntry(&e, "v2 "+e.v2.Method+" /0/version "+e.v2.Val, expected))
		case e.version != "" && d.to.Follows(release.ClusterRequests):
			take(e.version, d.atEntry(&e, "cluster_version_set "+e.version, expected))
		}
	}
	return best, at
}

// downgradeAllowed reports whether the cluster has enabled a downgrade to this server's minor version.
func (d *dir) downgradeAllowed(v release.Version) bool {
	if !d.to.Follows(release.ClusterRequests) || !d.m.HasDB() || !d.m.DB.Cluster.DowngradeEnabled {
		return false
	}
	return lineOf(d.m.DB.Cluster.DowngradeTarget) == d.to.line() && v == d.to.line().Next()
}

var commitInLog = described(Rule{
	ID: "P11", Level: Stops, Needs: theLog,
	Run: func(d *dir) *verdict {
		if !d.hasLog() || d.m.WAL.Summary.HardState == nil {
			return nil
		}
		s := &d.m.WAL.Summary
		last := max(s.LastIndex, d.snapIndex)
		if c := s.HardState.Commit; c < d.snapIndex || c > last {
			return &verdict{says: fmt.Sprintf("HardState says commit %d; the raft snapshot is at %d, the log ends at "+
				"%d", c, d.snapIndex, last),
				server: fmt.Sprintf("state.commit %d is out of range [%d, %d]", c, d.snapIndex, last),
				evidence: []check.Evidence{{Member: d.m.Label(), File: s.HardStatePos.Segment,
					Offset: check.Int64(s.HardStatePos.Offset), Field: "HardState.commit",
					Observed: fmt.Sprint(c), Expected: fmt.Sprintf("from %d to %d", d.snapIndex, last)}}}
		}
		return nil
	},
})

var rowsDecode = described(Rule{
	ID: "P12", Level: Stops, Needs: theDB,
	Run: func(d *dir) *verdict {
		if !d.m.HasDB() {
			return nil
		}
		var at []check.Evidence
		for _, x := range d.m.DB.Damage {
			if x.Kind != dumpdb.DamageRow || !d.readsBucket(x.Bucket) {
				continue
			}
			at = append(at, check.Evidence{Member: d.m.Label(), File: d.m.DB.File, Page: check.Uint64(x.Page),
				Offset: check.Int64(x.Offset), Bucket: x.Bucket, Observed: x.Error(), Expected: "a row that decodes"})
		}
		if kv := d.m.DB.KV; kv != nil {
			for _, v := range kv.Violations {
				if v.Rule == dumpdb.RuleUndecodable {
					at = append(at, check.Evidence{Member: d.m.Label(), File: d.m.DB.File, Page: check.Uint64(v.Page),
						Offset: check.Int64(v.Offset), Bucket: "key", Observed: v.Observed, Expected: v.Expected})
				}
			}
		}
		if len(at) == 0 {
			return nil
		}
		return &verdict{says: plural.Of(len(at), "row does", "rows do") + " not decode, first in bucket " +
			at[0].Bucket, server: bucketPanics[at[0].Bucket], evidence: firstN(at)}
	},
})

// bucketPanics are the messages of 3.6 for a row that does not decode, by bucket.
var bucketPanics = map[string]string{
	"key":             "failed to unmarshal mvccpb.KeyValue, or: invalid revision length",
	"lease":           "failed to Unmarshal lease proto item",
	"authUsers":       "failed to unmarshal 'authpb.User'",
	"authRoles":       "failed to unmarshal 'authpb.Role'",
	"alarm":           "failed to unmarshal alarm member",
	"members":         "failed to unmarshal member",
	"members_removed": "failed to unmarshal member",
}

func (d *dir) readsBucket(b string) bool {
	switch b {
	case "key", "lease", "authUsers", "authRoles", "alarm":
		return true
	case "members", "members_removed":
		return d.to.Follows(release.MembersFromDB)
	}
	return false
}

var v2Entries = described(Rule{
	ID: "P13", Level: Stops, Needs: theLog,
	Not: release.V2Executed,

	Run: func(d *dir) *verdict {
		v := &verdict{server: "panic: unmarshal should never fail (proto: cannot parse invalid wire-format data)"}
		if d.to.Follows(release.V2Decoded) {
			v.server = "detected disallowed v2 WAL for stage --v2-deprecation=write-only"
		}
		for _, e := range d.replayed() {
			if e.v2 == nil || d.to.Follows(release.V2Decoded) && mapped(e.v2) {
				continue
			}
			v.evidence = append(v.evidence, d.atEntry(&e, "v2 "+e.v2.Method+" "+e.v2.Path,
				"no v2 request above the raft snapshot"))
		}
		if len(v.evidence) == 0 {
			return nil
		}
		v.says = fmt.Sprintf("%d v2 requests are above the raft snapshot at index %d", len(v.evidence), d.snapIndex)
		v.evidence = firstN(v.evidence)
		return v
	},
})

// mapped reports whether 3.6 understands the v2 request.
func mapped(r *dumplog.V2Request) bool {
	return r.Method == "PUT" && (r.Path == "/0/version" || strings.HasPrefix(r.Path, "/0/members/") &&
		strings.HasSuffix(r.Path, "/attributes"))
}

var knownRequests = described(Rule{
	ID: "P14", Level: Stops, Needs: theLog, Not: release.DowngradeTests,
	Run: func(d *dir) *verdict {
		v := &verdict{server: "panic: not implemented"}
		for _, e := range d.executed() {
			if rule := knownBy[e.kind]; rule != nil && !d.to.Follows(rule) {
				v.evidence = append(v.evidence,
					d.atEntry(&e, string(e.kind), fmt.Sprintf("requests that etcd 3.%d knows", d.to.Minor)))
			}
		}
		if len(v.evidence) == 0 {
			return nil
		}
		v.says = fmt.Sprintf("%s above the consistent index %d with a request of a later etcd version",
			plural.Of(len(v.evidence), "entry", "entries"), d.m.ConsistentIndex())
		v.evidence = firstN(v.evidence)
		return v
	},
})

var learnerEntries = described(Rule{
	ID: "P15", Level: Stops, Needs: theLog, Not: release.Learners,
	Run: func(d *dir) *verdict {
		v := &verdict{says: "the log adds a learner", server: "ConfChange type should be either AddNode, RemoveNode " +
			"or UpdateNode"}
		for _, e := range d.replayed() {
			if e.conf != nil && e.conf.Type == dumplog.ConfChangeAddLearnerNode {
				v.evidence = append(v.evidence, d.atEntry(&e, "add learner "+e.conf.NodeID.String(), "no learner"))
			}
		}
		if len(v.evidence) == 0 {
			return nil
		}
		return v
	},
})

var userNames = described(Rule{
	ID: "P16", Level: Stops, Needs: theLog, Only: release.NamesUTF8,
	Run: func(d *dir) *verdict {
		v := &verdict{server: "panic: unmarshal should never fail (string field contains invalid UTF-8)"}
		for _, e := range d.replayed() {
			if e.badUser != "" {
				v.evidence = append(v.evidence, d.atEntry(&e, fmt.Sprintf("user %q", e.badUser), "UTF-8"))
			}
		}
		if len(v.evidence) == 0 {
			return nil
		}
		v.says, v.evidence = plural.Of(len(v.evidence), "entry has", "entries have")+" a user name that is not UTF-8",
			firstN(v.evidence)
		return v
	},
})

var selfRemoved = described(Rule{
	ID: "P17", Level: Stops, Needs: theLog,
	Run: func(d *dir) *verdict {
		if d.m.MemberID == 0 || !d.hasLog() {
			return nil
		}
		commit := d.m.Commit
		for _, e := range d.replayed() {
			if e.conf != nil && e.conf.Type == dumplog.ConfChangeRemoveNode && e.conf.NodeID == d.m.MemberID &&
				e.index <= commit {
				return &verdict{says: "the log removes this member", server: "the member has been permanently " +
					"removed from the cluster, or, of the only voter: removed all voters",
					evidence: []check.Evidence{d.atEntry(&e, "remove "+d.m.MemberID.String(), "")}}
			}
		}
		return nil
	},
})

var selfListed = described(Rule{
	ID: "P18", Level: Stops, Needs: theLog | theMembers, Only: release.Learners,
	Run: func(d *dir) *verdict {
		self := d.m.MemberID
		if self == 0 || !d.hasLog() {
			return nil
		}
		ids, where := d.listedMembers()
		if slices.Contains(ids, self) || d.to.Follows(release.MembersFromDB) && !d.m.HasDB() {
			return nil
		}
		return &verdict{says: fmt.Sprintf("member %s is not in its own member list (%s)", self, where),
			server: "failed to update; member unknown, or: failed to find local ID in cluster members",
			evidence: []check.Evidence{{Member: d.m.Label(), File: where, Observed: fmt.Sprint(ids),
				Expected: self.String() + " among them"}}}
	},
})

// listedMembers returns the members that the server knows after it has replayed its log.
func (d *dir) listedMembers() ([]dumplog.ID, string) {
	var ids []dumplog.ID
	where, changes := "", d.replayed()
	switch {
	case d.to.Follows(release.MembersFromDB):
		where, changes = "bucket members", d.executed()
		ids = slices.Clone(d.m.Membership.Bucket)
	case d.snap != nil && d.snap.V2 != nil:
		where = d.snap.File
		for _, m := range d.snap.V2.Members {
			ids = append(ids, m.ID)
		}
	default:
		where = "the log alone"
	}
	for _, e := range changes {
		if e.conf != nil && (e.conf.Type == dumplog.ConfChangeAddNode ||
			e.conf.Type == dumplog.ConfChangeAddLearnerNode) {
			ids = append(ids, e.conf.NodeID)
		}
	}
	return ids, where
}

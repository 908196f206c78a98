package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
)

// smallBucket renders a bucket of one member as rows of text that are equal exactly when the content is.
type smallBucket struct {
	name string
	rows func(m *evidence.Member) map[string]string
}

// smallBuckets is every bucket but key, and but meta, whose rows differ between healthy members.
var smallBuckets = []smallBucket{
	{"auth", authRows},
	{"authUsers", userRows},
	{"authRoles", roleRows},
	{"lease", leaseRows},
	{"alarm", alarmRows},
	{"members", memberRows},
	{"members_removed", removedRows},
	{"cluster", clusterRows},
}

func authRows(m *evidence.Member) map[string]string {
	a := &m.DB.Auth
	return map[string]string{"authEnabled": fmt.Sprint(a.Enabled), "authRevision": fmt.Sprint(a.Revision)}
}

// userRows leave the password out up to 3.4, where every member salts and hashes on its own, and show later ones only as
// a digest.
func userRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, u := range m.DB.Auth.Users {
		s := "roles [" + strings.Join(u.Roles, " ") + "]"
		if u.NoPassword {
			s += " no password"
		}
		out[u.Name] = s
	}
	return out
}

func roleRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, r := range m.DB.Auth.Roles {
		var ps []string
		for _, p := range r.Perms {
			ps = append(ps, p.String())
		}
		slices.Sort(ps)
		out[r.Name] = strings.Join(ps, ", ")
	}
	return out
}

func leaseRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, l := range m.DB.Leases {
		out[l.ID.String()] = "granted"
	}
	return out
}

func alarmRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, a := range m.DB.Alarms {
		out[a.MemberID.String()+" "+evidence.AlarmName(a.Type)] = "raised"
	}
	return out
}

// memberRows compare addresses and the learner flag; names and client URLs may legally lag in the bucket up to 3.5.
func memberRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, v := range m.DB.Members {
		urls := slices.Clone(v.PeerURLs)
		slices.Sort(urls)
		s := "peer URLs " + strings.Join(urls, ",")
		if v.IsLearner {
			s += " learner"
		}
		out[v.ID.String()] = s
	}
	return out
}

func removedRows(m *evidence.Member) map[string]string {
	out := map[string]string{}
	for _, id := range m.DB.Removed {
		out[id.String()] = "removed"
	}
	return out
}

func clusterRows(m *evidence.Member) map[string]string {
	out := map[string]string{"clusterVersion": m.DB.Cluster.Version}
	if m.DB.Cluster.DowngradeEnabled {
		out["downgrade"] = m.DB.Cluster.DowngradeTarget
	}
	return out
}

// small compares one small bucket. Its rows can not be wound back to the common index, so a difference counts only when
// no entry above that index touches the bucket.
func (r *Result) small(sb smallBucket, rp *replay.Result, o Options) Bucket {
	b := Bucket{Name: sb.name, Only: make([]int, len(r.Members))}
	take := r.taking()
	if len(take) < 2 {
		b.Reason = "fewer than two databases can be read"
		return b
	}
	b.tabulate(r, take, sb.rows, o)
	equal := b.Differ == 0
	if !equal {
		if b.Reason = r.incomparable(sb.name, take, rp); b.Reason != "" {
			return b
		}
	}
	b.Equal = &equal
	return b
}

// incomparable says why a difference in a small bucket proves nothing, "" when it does.
func (r *Result) incomparable(bucket string, take []int, rp *replay.Result) string {
	level, exact := true, true
	for _, i := range take {
		m, first := r.Members[i], r.Members[take[0]]
		level = level && m.AppliedMin == first.AppliedMin && m.AppliedMax == first.AppliedMax
		exact = exact && m.AppliedMin == m.AppliedMax
	}
	// Up to 3.4 members that were killed may stand at different places between the two, although both are equal.
	if level && r.lowest > 0 && (exact || rp == nil || rp.Survey == nil || rp.Survey.LastTouch[bucket] <= r.lowest) {
		return ""
	}
	if rp == nil || rp.Survey == nil || rp.First == 0 {
		return "the members stand at different indexes and no log tells what lies between"
	}
	if at := rp.Survey.LastTouch[bucket]; at > r.lowest {
		return fmt.Sprintf("entry %d, above the common index %d, can change this bucket", at, r.lowest)
	}
	if rp.First > r.lowest+1 {
		return fmt.Sprintf("the logs begin at %d, above the common index %d", rp.First, r.lowest)
	}
	return ""
}

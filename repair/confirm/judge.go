package confirm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// verdict is the information about one source when it is judged.
type verdict struct {
	target  *Target
	base    *Base
	minor   int
	server  string
	doubts  *doubts
	content *contents
	// revision is the server's revision at the target's index, modelled that of the model by the same rules.
	revision, modelled int64
}

// judge turns a comparison into a status.
func (v *verdict) judge() compare.ConfirmedMember {
	c := v.content
	c.trim()
	out := compare.ConfirmedMember{Member: v.target.Member.Label(), Index: v.target.Index, Revision: v.revision,
		Records: c.records, LeftOut: c.leftOut,
		Differences: c.list, More: c.total - len(c.list)}
	if c.first > 0 {
		out.First = &compare.ConfirmFirst{Revision: c.first}
		if e, ok := v.doubts.maker(c.first); ok {
			out.First.Index, out.First.Term, out.First.What = e.index, e.term, e.what
		}
	}
	if c.total == 0 {
		out.Status, out.Reason = compare.Confirmed, fmt.Sprintf("etcd %s makes this content of the log%s", v.server,
			v.from())
		return out
	}
	out.Status = compare.NotPossible
	if out.Reason = v.excused(); out.Reason == "" {
		out.Status, out.Reason = compare.Refuted, v.refutes()
	}
	return out
}

// from says on what a result rests besides the log.
func (v *verdict) from() string {
	if v.base.Kind == NewCluster {
		return ", from the first entry on"
	}
	n := plural.Of(max(v.target.Index, v.base.Index+1)-v.base.Index, "entry", "entries")
	return fmt.Sprintf(", executing %s from the database of %s on", n, v.base.Source)
}

// excused returns why a difference proves nothing, "" if it does.
func (v *verdict) excused() string {
	c := v.content
	if v.base.Kind == MemberDB {
		return fmt.Sprintf("it differs from what the log makes of the database of %s, and which of the two is wrong "+
			"is not known", v.base.Source)
	}
	if v.base.Kind != NewCluster {
		if n := len(c.small); n > 0 {
			return fmt.Sprintf("it differs in bucket %s, and the base may be what differs",
				strings.Join(slices.Sorted(maps.Keys(c.small)), ", "))
		}
		if c.first <= v.base.Revision {
			return fmt.Sprintf("it differs at revision %d, which the base holds already: the server has not made it",
				c.first)
		}
	}
	// A certain difference refutes, whatever else is excused.
	why := ""
	for _, bucket := range slices.Sorted(maps.Keys(c.small)) {
		x, ok := v.doubts.buckets[bucket]
		if !ok || x.index > v.target.Late {
			return ""
		}
		why = fmt.Sprintf("bucket %s differs, and entry %d may explain it: %s", bucket, x.index, x.why)
	}
	if c.first == 0 {
		return why
	}
	exact := c.first > c.compact && v.revision == v.modelled
	x, ok := v.doubts.excuse(c.first, exact)
	if !ok {
		x, ok = v.doubts.unseen(c.first, c.small["auth"]+c.small["authUsers"]+c.small["authRoles"] > 0)
	}
	if !ok {
		return ""
	}
	return fmt.Sprintf("histories part at revision %d, and entry %d may explain it: %s", c.first, x.index, x.why)
}

func (v *verdict) refutes() string {
	c := v.content
	var what []string
	if c.first > 0 {
		what = append(what, fmt.Sprintf("bucket key from revision %d on", c.first))
	}
	for _, bucket := range slices.Sorted(maps.Keys(c.small)) {
		what = append(what, "bucket "+bucket)
	}
	return fmt.Sprintf("etcd %s makes other content of the log%s: %s", v.server, v.from(), strings.Join(what, ", "))
}

// replaySays returns what this program's replay says about the same database.
func replaySays(rp *replay.Result, i int) string {
	if rp == nil || i >= len(rp.Members) || !rp.Members[i].Checked {
		return ""
	}
	m := rp.Members[i]
	wrong := m.Counts[replay.Missing] + m.Counts[replay.Contradicted] + m.Counts[replay.AppliedTwice] +
		len(m.Extra) + len(m.StateDiffs) + len(m.Jumps)
	if wrong > 0 || m.Unexplained != 0 {
		return compare.ReplayDiffers
	}
	return compare.ReplayAgrees
}

package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/replay"
	"github.com/etcd-medic/etcd-medic/release"
)

// confBucket is raft's own configuration, which is compared like a bucket.
const confBucket = "confState"

// rowsFunc returns a bucket of one member as rows of text. Rows are equal exactly if their content is.
type rowsFunc func(m *evidence.Member) map[string]string

// rowComparer compares everything except the keys, row by row.
type rowComparer struct {
	*Result
	// rp shows which entries can explain a difference; nil if there is no log.
	rp *replay.Result
	o  Options
}

func (r *Result) rows(rp *replay.Result, o Options) *rowComparer { return &rowComparer{r, rp, o} }

// byRow compares a small bucket row by row. A difference between two members counts only if no entry applied by only
// one of them can change the row. So a lagging member, or an older backup, does not prevent the comparison of the
// others.
func (r *rowComparer) byRow(b *Bucket, take []int, rows rowsFunc) {
	table := r.lineUp(take, rows)
	b.Compared = len(table)
	why := map[int]string{}
	apart := map[[2]int]bool{}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		row := Row{Key: []byte(key), Cells: table[key]}
		if !r.split(b.Name, &row, take, why, apart) {
			b.Moved++
			continue
		}
		b.weigh(without(take, row.Out), row, r.o.MaxRows)
	}
	equal := b.Differ == 0
	switch {
	case !equal || b.Moved == 0:
		b.Equal = release.AnswerOf(equal)
	case r.someCompared(take, apart):
		b.Equal = release.AnswerOf(equal)
		b.Limits = r.limits(why)
	default:
		b.Reason = r.limits(why)
	}
}

// lineUp returns the rows of all members by key.
func (r *rowComparer) lineUp(take []int, rows rowsFunc) map[string][]*Cell {
	table := map[string][]*Cell{}
	for _, i := range take {
		for k, text := range rows(r.Members[i]) {
			if table[k] == nil {
				table[k] = make([]*Cell, len(r.Members))
			}
			table[k][i] = &Cell{Text: text}
		}
	}
	return table
}

// split finds the members whose version of a row cannot be compared with any differing one. It returns false if the row
// differs, but no difference remains to be judged.
func (r *rowComparer) split(bucket string, row *Row, take []int, why map[int]string,
	apart map[[2]int]bool) bool {
	if allSame(row.Cells, take) {
		return true
	}
	proven := false
	comparable := map[int]bool{}
	for n, i := range take {
		for _, j := range take[n+1:] {
			same := sameText(row.Cells[i], row.Cells[j])
			reason := r.mayDiffer(replay.Row{Bucket: bucket, Key: string(row.Key)}, i, j)
			switch {
			case reason == "":
				comparable[i], comparable[j] = true, true
				proven = proven || !same
			case !same:
				apart[[2]int{i, j}] = true
				late := i
				if r.Members[j].AppliedMin < r.Members[i].AppliedMin {
					late = j
				}
				why[late] = reason
			}
		}
	}
	for _, i := range take {
		if !comparable[i] {
			row.Out = append(row.Out, i)
		}
	}
	return proven
}

// mayDiffer returns why a row may normally differ between two members, "" if it may not.
func (r *rowComparer) mayDiffer(row replay.Row, i, j int) string {
	a, b := r.Members[i], r.Members[j]
	from, to := min(a.AppliedMin, b.AppliedMin), max(a.AppliedMax, b.AppliedMax)
	open := row.Bucket == "lease" && (openEnded(a) || openEnded(b))
	if row.Bucket == confBucket { // raft's configuration follows the commit index
		row.Bucket = "members"
		from, to = min(a.Commit, b.Commit), max(a.Commit, b.Commit)
	}
	for _, m := range []*evidence.Member{a, b} {
		if m.DamageHidesChanges(row.Bucket) {
			return m.Label() + " may have applied entries that damage of its log hides, and its index does not count " +
				"them"
		}
	}
	more, noLog := a.MayHoldMore() || b.MayHoldMore(), r.rp == nil || r.rp.Survey == nil || r.rp.First == 0
	switch {
	case from == 0:
		return "a database does not show how far it has applied the log"
	case from == to && noLog && open:
		return fmt.Sprintf("%s or %s may have applied later entries that write no key, and no log has them", a.Label(),
			b.Label())
	case from == to && !more:
		return ""
	case noLog:
		if a.AppliedMin == b.AppliedMin && a.AppliedMax == b.AppliedMax && !more || decidedByAuthRevision(row, a, b) {
			return ""
		}
		if more {
			return fmt.Sprintf("%s or %s applied entries while its snapshot began, and no log has them",
				a.Label(), b.Label())
		}
		return fmt.Sprintf("%s and %s are at different indexes and no log has the entries between them", a.Label(),
			b.Label())
	case r.entriesCannotExplain(row, a, b):
		return ""
	case !r.rp.Covers(from, to) && !atOneAuthRevision(row, a, b):
		return fmt.Sprintf("the logs do not have all entries between %d and %d, the indexes of %s and %s", from, to,
			a.Label(), b.Label())
	}
	if at := r.rp.Survey.TouchedBetween(row, from, to); at > 0 && !atOneAuthRevision(row, a, b) {
		return fmt.Sprintf("entry %d, which %s has and %s may not have applied, can change row %q", at,
			later(a, b).Label(), earlier(a, b).Label(), row.Key)
	}
	return ""
}

// openEnded reports whether a database may have applied more than its consistent index, which up to 3.4 moves with key
// writes only: leases come and go without them. A running member says how far it has applied.
func openEnded(m *evidence.Member) bool {
	return m.Source.Kind != evidence.KindEndpoint && !m.Version.Follows(release.IndexWithEveryEntry)
}

// atOneAuthRevision reports whether a row is of a user or a role, and two data dirs have the same auth revision. Every
// change of these raises it by one (auth/store.go, commitRevision), so neither has applied one more than the other.
func atOneAuthRevision(row replay.Row, a, b *evidence.Member) bool {
	x, y := &a.DB.Auth, &b.DB.Auth
	return (row.Bucket == "authUsers" || row.Bucket == "authRoles") && x.HasRevision && y.HasRevision &&
		x.Revision == y.Revision && a.Source.Kind == evidence.KindDataDir && b.Source.Kind == evidence.KindDataDir
}

// entriesCannotExplain reports whether a row is the auth revision, and that of one data dir is higher by more than the
// log has auth entries that the other one may not have applied: each raises it by one at most, and it never falls
// (auth/store.go, commitRevision).
func (r *rowComparer) entriesCannotExplain(row replay.Row, a, b *evidence.Member) bool {
	x, y := &a.DB.Auth, &b.DB.Auth
	if row.Bucket != "auth" || row.Key != "authRevision" || !x.HasRevision || !y.HasRevision ||
		a.Source.Kind != evidence.KindDataDir || b.Source.Kind != evidence.KindDataDir {
		return false
	}
	low, high := a, b
	if y.Revision < x.Revision {
		low, high = b, a
	}
	last := max(r.rp.Last, high.AppliedMax)
	return r.rp.Covers(low.AppliedMin, last) &&
		high.DB.Auth.Revision-low.DB.Auth.Revision > uint64(r.rp.Survey.AuthRisesAfter(low.AppliedMin))
}

// decidedByAuthRevision reports whether the auth revisions of running members show without a log that the row may not
// differ: users and roles follow from the revision, and who has applied more has no lower one. Backups are left out:
// after a restore, indexes count from the beginning.
func decidedByAuthRevision(row replay.Row, a, b *evidence.Member) bool {
	x, y := &a.DB.Auth, &b.DB.Auth
	if !x.HasRevision || !y.HasRevision || a.Source.Kind != evidence.KindEndpoint ||
		b.Source.Kind != evidence.KindEndpoint {
		return false
	}
	switch {
	case row.Bucket == "authUsers" || row.Bucket == "authRoles":
		return x.Revision == y.Revision
	case row.Bucket == "auth" && row.Key == "authRevision":
		return later(a, b).DB.Auth.Revision < earlier(a, b).DB.Auth.Revision
	}
	return false
}

func earlier(a, b *evidence.Member) *evidence.Member {
	if b.AppliedMin < a.AppliedMin {
		return b
	}
	return a
}

func later(a, b *evidence.Member) *evidence.Member {
	if b.AppliedMin < a.AppliedMin {
		return a
	}
	return b
}

// someCompared reports whether two of the members were compared in every row.
func (r *rowComparer) someCompared(take []int, apart map[[2]int]bool) bool {
	for n, i := range take {
		for _, j := range take[n+1:] {
			if !apart[[2]int{i, j}] {
				return true
			}
		}
	}
	return false
}

// limits joins the reasons, one for each member.
func (r *rowComparer) limits(why map[int]string) string {
	var reasons []string
	for _, i := range slices.Sorted(maps.Keys(why)) {
		reasons = append(reasons, why[i])
	}
	return strings.Join(reasons, "; ")
}

func sameText(a, b *Cell) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Text == b.Text
}

func without(take, out []int) []int {
	if len(out) == 0 {
		return take
	}
	return slices.DeleteFunc(slices.Clone(take), func(i int) bool { return slices.Contains(out, i) })
}

// Odd returns the members whose row differs from that of an agreeing majority of the compared members. It is a hint,
// not proof: the majority can be wrong.
func (row *Row) Odd(compared []int) []int {
	var most []int
	for _, i := range compared {
		var group []int
		for _, j := range compared {
			if sameText(row.Cells[i], row.Cells[j]) {
				group = append(group, j)
			}
		}
		if len(group) > len(most) {
			most = group
		}
	}
	if 2*len(most) <= len(compared) {
		return nil
	}
	return without(compared, most)
}

// Compared returns the positions of the members whose versions of the row were compared.
func (r *Result) Compared(row *Row) []int { return without(r.taking(), row.Out) }

// RowKeys returns the keys of the rows that one of two members has, in order.
func RowKeys[R ~map[string]string](a, b R) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// RowsOf returns a member's rows of a small bucket in the form used for comparison.
func RowsOf(m *evidence.Member, bucket string, kind RowKind) map[string]string {
	switch kind {
	case TTLRow:
		return ttlRows(m)
	case PasswordRow:
		return passwordRows(m)
	case AttributesRow:
		return attributeRows(m)
	}
	for _, b := range smallBuckets {
		if b.name == bucket {
			return b.rows(m)
		}
	}
	return nil
}

package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
)

// inspectionPage is the text of inspect.
type inspectionPage struct{ *page }

// write writes one source on one screen, or with Full all its facts and then the checks.
func (i inspectionPage) write(r *compare.Report) {
	p := i.page
	if p.o.Quiet {
		verdictSection{p}.lastLine(r)
		return
	}
	if !p.o.Full {
		p.onScreen(func(s screen) { inspectScreen{reportScreen{s, r}}.write() })
		return
	}
	p.setSources(r)
	verdictSection{p}.write(&r.Verdict)
	p.unused(r.Sources)
	for _, s := range r.Sources {
		if s.Error == "" {
			p.line("source %s: %s, %s, %s, sha256 %s", clean(s.Name), s.Kind,
				plural.Of(s.Files, "file", "files"), plural.Size(s.Bytes), cmp.Or(s.SHA256, "not computed"))
		}
	}
	for i := range r.Members {
		factsSection{p}.write(&r.Members[i])
	}
	causesSection{p, namedCause(r)}.write(r.Causes)
	findingsSection{p, r.Next}.write(r.Findings)
	checksSection{p}.write(r.Checks, true)
	nextSection{p}.write(r.Next)
	verdictSection{p}.lastLine(r)
}

// factsSection writes all facts of one member.
type factsSection struct{ *page }

func (p factsSection) write(m *evidence.Facts) {
	p.section("member")
	p.pairs("  ",
		[2]string{"name", m.Name},
		[2]string{"node name", m.NodeName},
		[2]string{"member id", hexID(uint64(m.MemberID))},
		[2]string{"cluster id", hexID(uint64(m.ClusterID))},
		[2]string{"written by", orDash(m.WroteBy.Etcd) + because(m.WroteBy.Because)},
		[2]string{"cluster version", m.ClusterVersion},
		[2]string{"downgrade to", m.Downgrade},
		[2]string{"commit", num0(m.Commit)},
		[2]string{"applied", num0(m.AppliedIndex)},
		[2]string{"missing", strings.Join(m.Missing, ", ")})
	for _, x := range m.Problems {
		p.text("  !! ", fmt.Sprintf("%s %s: %s", x.Part, x.File, x.Error))
	}
	p.log(m.WAL)
	p.snapshots(m)
	p.database(m.DB)
	p.auth(m.Auth)
	p.membership(m)
	p.leases(m)
}

func because(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (p factsSection) log(w *evidence.WALFacts) {
	p.section("log")
	if w == nil {
		p.line("  none")
		return
	}
	hs := ""
	if w.HardState != nil {
		hs = fmt.Sprintf("term %d, vote %s, commit %d", w.HardState.Term, w.HardState.Vote, w.HardState.Commit)
	}
	types := []string{}
	for _, t := range slices.Sorted(maps.Keys(w.RecordTypes)) {
		types = append(types, fmt.Sprintf("%d %s", w.RecordTypes[t], t))
	}
	p.pairs("  ",
		[2]string{"records", fmt.Sprintf("%d (%s)", w.Records, strings.Join(types, ", "))},
		[2]string{"entries", fmt.Sprintf("%d to %s", w.FirstIndex, termIndex(w.LastTerm, w.LastIndex))},
		[2]string{"overwrites", fmt.Sprint(w.Overwritten)},
		[2]string{"HardState", hs},
		[2]string{"start", string(w.Start)})
	var rows [][]string
	for _, s := range w.Segments {
		rows = append(rows, []string{s.Name, fmt.Sprint(s.Size), fmt.Sprint(s.DataEnd), fmt.Sprint(s.Records),
			fmt.Sprintf("%d..%d", s.FirstEntry, s.LastEntry), s.End})
	}
	p.table("  ", []string{"segment", "size", "data end", "records", "entries", "end"}, rows)
	for _, s := range w.Snapshots {
		p.line("  snapshot record %s at %s%s", termIndex(s.Term, s.Index), s.Pos, confState(s.ConfState))
	}
	p.leftOvers(w.LeftOvers)
	p.damage(w.Damage, w.DamageOmitted)
}

func (p factsSection) leftOvers(l []dumplog.LeftOver) {
	for _, f := range l {
		p.text("  left over: ", fmt.Sprintf("%s (%s): %s", f.Name, plural.Size(f.Size), f.What))
	}
}

func (p factsSection) damage(d []evidence.DamageFacts, omitted int) {
	for _, x := range d {
		p.text("  !! ", x.Kind+": "+x.Detail)
		if x.LostFrom > 0 {
			p.line("     lost: index %d%s", x.LostFrom, upTo(x.LostTo))
		}
		p.text("     etcd: ", x.Server)
	}
	if omitted > 0 {
		p.line("  !! %d more damaged places", omitted)
	}
}

func upTo(n uint64) string {
	if n == 0 {
		return " and whatever followed"
	}
	return fmt.Sprintf(" to %d", n)
}

func (p factsSection) snapshots(m *evidence.Facts) {
	p.section("raft snapshots")
	if len(m.Snapshots) == 0 && len(m.SnapDBs) == 0 {
		p.line("  none")
	}
	for i := range m.Snapshots {
		s := &m.Snapshots[i]
		p.line("  %s  %s  %s", clean(s.File), termIndex(s.Term, s.Index), plural.Size(s.Size))
		p.text("    ", strings.TrimPrefix(confState(&s.ConfState), ", "))
		if v := s.V2; v != nil {
			p.text("    ", fmt.Sprintf("v2 store: %d members, %d removed, version %s, %d user keys", len(v.Members),
				len(v.Removed), v.Version, len(v.UserKeys)))
		}
		if s.Unfinished {
			p.line("    unfinished: no record of the log names it")
		}
		if s.Damage != nil {
			p.damage([]evidence.DamageFacts{*s.Damage}, 0)
		}
	}
	for _, s := range m.SnapDBs {
		p.line("  %s  index %d  %s", clean(s.File), s.Index, plural.Size(s.Size))
	}
	p.leftOvers(m.LeftOvers)
}

func confState(c *dumplog.ConfState) string {
	if c == nil || len(c.Voters) == 0 && len(c.Learners) == 0 {
		return ""
	}
	return textIDs(", voters ", c.Voters) + textIDs(", learners ", c.Learners) + textIDs(", outgoing ",
		c.VotersOutgoing)
}

func textIDs[T fmt.Stringer](label string, ids []T) string {
	if len(ids) == 0 {
		return ""
	}
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = id.String()
	}
	return label + strings.Join(s, " ")
}

func (p factsSection) database(d *evidence.DBFacts) {
	p.section("database")
	if d == nil {
		p.line("  none")
		return
	}
	hash := ""
	if h := d.HashKV; h != nil {
		hash = fmt.Sprintf("%d at revision %d, compact revision %d", h.Hash, h.Rev, h.CompactRev)
	}
	p.pairs("  ",
		[2]string{"file", fmt.Sprintf("%s, %s, %s in use, page size %d", d.File, plural.Size(d.Size),
			plural.Size(d.InUse), d.PageSize)},
		[2]string{"consistent index", ptr(d.ConsistentIndex)},
		[2]string{"term", ptr(d.Term)},
		[2]string{"storage version", orDash(d.StorageVersion)},
		[2]string{"ConfState", dbConfState(d.ConfState)},
		[2]string{"revision", d.RevisionText()},
		[2]string{"compact revision", fmt.Sprintf("%s (scheduled %s, finished %s)", compactText(d.CompactRevision),
			ptr(d.ScheduledCompact), ptr(d.FinishedCompact))},
		[2]string{"keys", fmt.Sprintf("%s live, %s revisions, %s tombstones", d.KeysText(), ptr(d.Revisions),
			ptr(d.Tombstones))},
		[2]string{"leases", fmt.Sprint(d.Leases)},
		[2]string{"HashKV", hash})
	for _, m := range d.Metas {
		what := "valid"
		switch {
		case !m.Valid:
			what = "NOT VALID: " + m.Problem
		case m.Used:
			what = "valid, in use"
		}
		p.text(fmt.Sprintf("  meta page %d: ", m.Page), fmt.Sprintf("txid %d, root %d, high-water mark %d, %s", m.Txid,
			m.Root, m.HighWater, what))
	}
	p.hashes(d)
	p.damage(d.Damage, d.DamageOmitted)
}

func dbConfState(c *dumpdb.ConfState) string {
	if c == nil {
		return ""
	}
	return strings.TrimPrefix(textIDs(", voters ", c.Voters)+textIDs(", learners ", c.Learners)+textIDs(", outgoing ",
		c.VotersOutgoing), ", ")
}

func (p factsSection) hashes(d *evidence.DBFacts) {
	var rows [][]string
	for _, b := range d.Buckets {
		h := d.Hashes[b]
		if h == "" {
			h = "-"
		}
		rows = append(rows, []string{b, h})
	}
	if len(rows) > 0 {
		p.table("  ", []string{"bucket", "content hash"}, rows)
	}
}

func (p factsSection) auth(a *evidence.AuthFacts) {
	p.section("auth")
	if a == nil {
		p.line("  unknown")
		return
	}
	p.line("  enabled %v, auth revision %d", a.Enabled, a.Revision)
	for _, u := range slices.Sorted(maps.Keys(a.Users)) {
		p.text("  user "+clean(u)+": ", "roles "+strings.Join(a.Users[u], ", "))
	}
	for _, r := range slices.Sorted(maps.Keys(a.Roles)) {
		p.text("  role "+clean(r)+": ", strings.Join(orNone(a.Roles[r]), "; "))
	}
}

func orNone(s []string) []string {
	if len(s) == 0 {
		return []string{"no permissions"}
	}
	return s
}

func (p factsSection) membership(m *evidence.Facts) {
	p.section("membership")
	ms := &m.Membership
	agree := "unknown"
	if ms.Agree != release.Unknown {
		agree = fmt.Sprint(ms.Agree.Certain())
	}
	p.pairs("  ",
		[2]string{"voters", textIDs("", ms.Voters)},
		[2]string{"learners", textIDs("", ms.Learners)},
		[2]string{"removed", textIDs("", ms.Removed)},
		[2]string{"v2 store", textIDs("", ms.V2)},
		[2]string{"meta ConfState", textIDs("", ms.ConfState)},
		[2]string{"raft and bucket agree", agree})
	var rows [][]string
	for _, x := range ms.Members {
		role := "voter"
		if x.IsLearner {
			role = "learner"
		}
		rows = append(rows, []string{x.ID.String(), x.Name, role, strings.Join(x.PeerURLs, " "),
			strings.Join(x.ClientURLs, " ")})
	}
	if len(rows) > 0 {
		p.table("  ", []string{"members bucket", "name", "role", "peer URLs", "client URLs"}, rows)
	}
}

func (p factsSection) leases(m *evidence.Facts) {
	if len(m.Leases) > 0 {
		p.section("leases")
		leases := slices.Clone(m.Leases)
		sort.Slice(leases, func(i, j int) bool { return leases[i].ID < leases[j].ID })
		for i, l := range leases {
			if i == 20 {
				p.line("  … and %d more, see -w json", len(leases)-i)
				break
			}
			p.line("  %s  TTL %d s%s", l.ID, l.TTL, remaining(l.RemainingTTL))
		}
	}
	if len(m.Alarms) > 0 {
		p.section("alarms")
		for _, a := range m.Alarms {
			p.line("  %s raised for member %s", a.Alarm, a.MemberID)
		}
	}
}

func remaining(s int64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf(", %d s remaining", s)
}

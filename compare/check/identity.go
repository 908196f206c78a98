package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

var notRemoved = described(Check{
	ID:  M08,
	Run: runNotRemoved,
})

func runNotRemoved(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if m.MemberID == 0 {
			continue
		}
		checked++
		if by, ev := in.Membership().removedBy(m); by != nil {
			fs = append(fs, in.Membership().removedFinding(m, ev))
		}
	}
	if checked == 0 {
		return Result{Reason: "no source carries a member ID"}
	}
	return outcome(fs, "")
}

func (mb *Membership) removedFinding(m *evidence.Member, ev removal) Finding {
	f := Finding{Kind: KindDataDirOfRemoved, Severity: Warning, Members: []string{m.Label()}, At: ev.at,
		Title: fmt.Sprintf("%s is the data dir of member %s, which was removed", m.Label(), m.MemberID),
		Explanation: "a server refuses to start on it, and its content ends where it was cut off. It says nothing of " +
			"the other members",
		Evidence: []Evidence{ev.Evidence},
		Remedy: []Remedy{{Text: "leave " + m.Label() + " out, and start no server on it",
			Risk: "what only this member holds is lost when the dir is deleted"}}}
	if r := mb.replacedTail(m); r != nil {
		f.Explanation += fmt.Sprintf(". Above its commit index its log holds %s, which the forced start replaced: "+
			"whether a majority had them is not known", plural.Span(r.First, m.LastIndex(), "entry", "entries"))
	}
	if why, more := mb.removedMatters(m); why != "" {
		f.Severity, f.Class = Error, ClassMembership
		f.Explanation = "a server refuses to start on it, and its content ends where it was cut off. " + why
		f.Evidence = append(f.Evidence, more)
		f.Remedy[0].Text = "leave it out; add a new member with an empty data dir instead"
	}
	return f
}

// removedMatters says why the dir of a removed member is more than a note, "" when it is not.
func (mb *Membership) removedMatters(m *evidence.Member) (why string, ev Evidence) {
	var members []*evidence.Member
	var last uint64
	for _, o := range mb.Members {
		known := o.MemberID != 0 && o.ClusterID == m.ClusterID && !mb.IsRemoved(o)
		if known || unnamedMember(o, m.MemberID) {
			members, last = append(members, o), max(last, o.LastIndex(), o.ConsistentIndex())
		}
	}
	ev = Evidence{Member: m.Label()}
	if len(members) == 0 {
		ev.Field, ev.Observed, ev.Expected = "other sources", "no data dir of a member",
			"the data dirs of the cluster's members"
		return "No data dir of a member of the cluster is among the sources", ev
	}
	if m.Commit > last {
		ev.Field, ev.Observed, ev.Expected, ev.Show = "commit index", fmt.Sprint(m.Commit),
			fmt.Sprintf("at most %d, where the members at hand end", last), showLog(m, m.Commit)
		return fmt.Sprintf("It holds the committed entries %d..%d, which no member at hand holds", last+1, m.Commit), ev
	}
	for _, o := range members {
		for id, name := range o.Membership.Names {
			here := slices.ContainsFunc(mb.Members, func(x *evidence.Member) bool { return x.MemberID == id })
			if name == m.Label() && !here && (slices.Contains(o.Membership.Voters, id) ||
				slices.Contains(o.Membership.Learners, id)) {
				ev.Field, ev.Observed, ev.Expected, ev.Show = "member of that name", m.MemberID.String(), id.String(),
					showDB(o, "members")
				return fmt.Sprintf("It was given in the place of member %s, which is called %s now and whose data "+
					"dir is not among the sources", id, name), ev
			}
		}
	}
	return "", ev
}

// unnamedMember reports whether a source is the data dir of a member that lost its log, and with it its ID, and whose
// database names another one as removed.
func unnamedMember(m *evidence.Member, removed dumplog.ID) bool {
	return m.MemberID == 0 && m.Source.Kind == evidence.KindDataDir && m.HasDB() &&
		slices.Contains(m.DB.Removed, dumpdb.ID(removed))
}

type removal struct {
	Evidence
	at At
}

func confChanges(m *evidence.Member) []evidence.ConfEntry {
	if !m.HasWAL() {
		return nil
	}
	return m.WAL.Conf
}

// changedMember reports whether a conf change in the log of m names the ID of a member. One that every server refuses
// may name any ID.
func changedMember(m *evidence.Member, id dumplog.ID) bool {
	return slices.ContainsFunc(confChanges(m), func(c evidence.ConfEntry) bool {
		return c.Change.NodeID == id && !c.Refused
	})
}

var belongsHere = described(Check{
	ID:    M09,
	Needs: NeedLog,
	Run:   runBelongsHere,
})

func runBelongsHere(in *Input) Result {
	var fs []Finding
	checked := 0
	for _, m := range in.Members {
		if m.MemberID == 0 || !m.HasWAL() {
			continue
		}
		checked++
		if f := unknownMember(in.Members, m); f != nil {
			fs = append(fs, *f)
		}
		if f := otherName(m); f != nil {
			fs = append(fs, *f)
		}
	}
	if checked == 0 {
		return Result{Reason: "no source carries a member ID"}
	}
	return outcome(fs, "")
}

// unknownMember: all sources that could know the ID are given, and none does.
func unknownMember(ss Sources, m *evidence.Member) *Finding {
	var asked []string
	for _, o := range ss {
		ms := &o.Membership
		if o.ClusterID != m.ClusterID && o.ClusterID != 0 {
			continue
		}
		if knows(ms, m.MemberID) || changedMember(o, m.MemberID) {
			return nil
		}
		if o.ConfigurationCurrent() && len(ms.Voters) > 0 && o.Commit >= m.Commit {
			asked = append(asked, o.Label())
		}
	}
	if len(asked) > 1 { // a member does not confirm itself if others can
		asked = slices.DeleteFunc(asked, func(label string) bool { return label == m.Label() })
	}
	if len(asked) == 0 {
		return nil
	}
	return &Finding{Kind: KindMemberUnknown, Severity: Error, Class: ClassMembership, Members: []string{m.Label()},
		Title: fmt.Sprintf("%s: member %s is in no configuration and no member list", m.Label(), m.MemberID),
		Explanation: fmt.Sprintf("%s list every member of the cluster, and not this one: the metadata of the WAL was "+
			"altered, the WAL belongs to another set, or it was put next to a database that is not its own",
			strings.Join(asked, ", ")),
		Evidence: []Evidence{{Member: m.Label(), File: m.WAL.Summary.Segments[0].Name, Field: "member ID",
			Observed: m.MemberID.String(), Expected: "a member that the configuration names",
			Show: showLogAs(m, "--raw")}}}
}

func knows(ms *evidence.Membership, id dumplog.ID) bool {
	for _, ids := range [][]dumplog.ID{ms.Voters, ms.Learners, ms.Removed, ms.V2, ms.Bucket, ms.MetaConfState} {
		if slices.Contains(ids, id) {
			return true
		}
	}
	return false
}

// otherName: the source was given under the name of another member.
func otherName(m *evidence.Member) *Finding {
	if m.NodeName == "" || m.NodeName == m.Label() || m.MixedLog() {
		return nil
	}
	for id, name := range m.Membership.Names {
		if name != m.Label() || id == m.MemberID || slices.Contains(m.Membership.Removed, id) {
			continue
		}
		return &Finding{Kind: KindMemberNamedWrongly, Severity: Warning, Members: []string{m.Label()},
			Title: fmt.Sprintf("%s was given as the data dir of that member, but is that of %s", m.Label(), m.NodeName),
			Explanation: fmt.Sprintf("member %s is called %s, and %s is member %s: the volumes were swapped, or the "+
				"sources were named wrongly. A server started on it under the other name has this identity all the "+
				"same", m.MemberID, m.NodeName, name, id),
			Evidence: []Evidence{{Member: m.Label(), File: m.WAL.Summary.Segments[0].Name, Field: "member name",
				Observed: m.NodeName, Expected: m.Label(), Show: showDB(m, "members")}}}
	}
	return nil
}

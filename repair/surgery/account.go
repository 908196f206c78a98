package surgery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/internal/plural"
)

// account reports the changes of the log. It refuses if entries are lost on which the cluster may rely.
func (r *rewriter) account() error {
	w := r.w
	if r.log == nil {
		return refusef("", "nothing of the log could be written")
	}
	if r.firstBad < len(r.s.Segments) {
		w.did("the log is rewritten from segment %s on, with a new CRC chain; it ends at index %d",
			r.s.Segments[r.firstBad].Name, r.last())
	} else {
		w.did("the log continues in a new segment, because its last one is missing; it ends at index %d", r.last())
	}
	if len(r.filled) > 0 {
		w.did("lost %s taken from the log of %s", entries(r.filled...),
			strings.Join(slices.Sorted(maps.Keys(r.used)), ", "))
	}
	if len(r.unproven) > 0 {
		w.note("%s kept as on disk, although the checksum fails",
			entries(spansOf(slices.Sorted(maps.Keys(r.unproven)))...))
	}
	if len(r.bridged) > 0 {
		w.givesUp("%s, which a raft snapshot at index %d covers", entries(r.bridged...), newestUsable(w.source()))
	}
	if r.dropped > 0 {
		w.givesUp("%s of segments that belong to another member or cluster",
			plural.Of(r.dropped, "record", "records"))
	}
	return r.lost()
}

// lost compares the old end of the log with the new one. The member may have acknowledged everything it had on disk,
// except a record that was torn while it was written.
func (r *rewriter) lost() error {
	w, m := r.w, r.w.source()
	had := max(r.s.LastIndex, r.s.MaxCommit)
	if r.short {
		had = max(had, m.ConsistentIndex())
	}
	for _, d := range r.s.Damage {
		had = max(had, d.LostFrom, d.LostTo)
	}
	last := r.last()
	if had <= last {
		return nil
	}
	w.givesUp("%s of this member's log", entries(span{last + 1, had}))
	commit := max(r.s.MaxCommit, m.ConsistentIndex())
	for _, p := range w.peers() {
		commit = max(commit, p.Commit)
	}
	if own := max(r.s.MaxCommit, m.ConsistentIndex()); own > last {
		return w.need(AcceptLostCommits, r.advice(),
			fmt.Sprintf("committed, as this member knows: %s; without them it would forget what it confirmed",
				entries(span{last + 1, own})))
	}
	if last+1 >= r.torn && r.torn > 0 {
		w.note("a record torn by a crash was never acknowledged; if something else cut the file, it may have been")
		if !m.HasDB() {
			w.note("no database was given: it would show whether the member had applied more")
		}
		return nil
	}
	if commit > last {
		return w.need(AcceptLostCommits, r.advice(), fmt.Sprintf("committed, perhaps by this member's vote: %s",
			entries(span{last + 1, min(commit, had)})))
	}
	if len(w.peers()) == 0 && len(m.Membership.Voters) > 1 {
		return w.need(AcceptLostCommits, r.advice(),
			fmt.Sprintf("perhaps committed by this member's vote, and no other member was named that shows it: %s",
				entries(span{last + 1, had})))
	}
	return nil
}

func (r *rewriter) advice() string {
	if slices.ContainsFunc(r.s.Damage, func(d *dumplog.DamageError) bool { return d.Kind == dumplog.DamageCRC }) &&
		len(r.unproven) == 0 {
		return "name other members with --with, whose logs may have the entries, or keep entries whose checksum " +
			"fails with --" + AcceptUnproven
	}
	if len(r.w.peers()) == 0 {
		return "name other members with --with: their logs may have the entries"
	}
	return "clone the member from a better one: etcd-medic repair plan"
}

// entries names ranges of the log in words.
func entries(list ...span) string {
	if len(list) == 1 && list[0].from == list[0].to {
		return "entry " + list[0].String()
	}
	return "entries " + spans(list)
}

func spans(list []span) string {
	var out []string
	for i, s := range list {
		if i == 5 {
			return strings.Join(out, ", ") + fmt.Sprintf(" and %d more stretches", len(list)-i)
		}
		out = append(out, s.String())
	}
	return strings.Join(out, ", ")
}

func spansOf(sorted []uint64) (out []span) {
	for _, i := range sorted {
		if n := len(out); n > 0 && out[n-1].to+1 == i {
			out[n-1].to = i
			continue
		}
		out = append(out, span{i, i})
	}
	return out
}

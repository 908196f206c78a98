package plan

import (
	"fmt"
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/shell"
)

// maxRecords bounds the wrong records that a plan lists; the report of the diagnosis lists more.
const maxRecords = 100

// losses lists what the plan gives up, the commands that save it, and what a person must know first.
type losses struct{ *roster }

// lost says what keeping the best member loses and how to save it.
func (lo *losses) lost() {
	lo.p.Lost = Lost{}
	switch {
	case lo.made():
		lo.lostOfMade()
	case lo.r.Best != nil:
		lo.lostOfBest()
	}
	lo.saveOthers()
}

// lostOfBest takes over what the report says of its best source.
func (lo *losses) lostOfBest() {
	l := lo.r.Best.Lost
	if x := lo.p.Rebuilt; x != nil && x.Continues { // with what the logs add
		l.CommittedEntries -= l.AfterEnd
		l.Awaited, l.AfterEnd = 0, x.lost()
		l.CommittedEntries += l.AfterEnd
	} else if l.FromLogs { // which no server does
		l.CommittedEntries, l.AfterEnd, l.Awaited = l.CommittedEntries+l.Awaited, l.AfterEnd+l.Awaited, 0
	}
	lo.p.Lost = Lost{CommittedEntries: l.CommittedEntries, Keys: l.Keys, Entries: l.Entries, AfterEnd: l.AfterEnd,
		Parted: l.Parted, Awaited: l.Awaited, Records: l.Records.First(maxRecords), Unproven: l.Unproven}
	if x := lo.p.Rebuilt; x != nil && x.Continues {
		lo.p.Lost.Unproven = slices.DeleteFunc(slices.Clone(l.Unproven), func(s string) bool { return s == l.Tail })
		lo.undecidedOfRebuilt(x)
	}
	lo.mendRecords(l.Mend)
	held := map[string]bool{}
	for _, e := range l.Entries {
		for _, h := range e.HeldBy {
			held[h] = true
		}
	}
	for _, src := range lo.named() {
		if held[src.Name] {
			lo.p.Lost.save(extract(src, l.KeyNames, l.Keys))
		}
	}
	if !l.Command.IsZero() && l.CommittedEntries > 0 {
		lo.p.Lost.save(lo.at(l.Command).Then(shell.Format("> lost-entries.jsonl")))
		for i, c := range l.MoreCommands {
			lo.p.Lost.save(lo.at(c).Then(shell.Format("> {}", fmt.Sprintf("lost-entries-%d.jsonl", i+2))))
		}
	}
}

// mendRecords offers the command that mends the wrong records of the best member, unless it was tried and failed.
func (lo *losses) mendRecords(cmd shell.Command) {
	t := lo.o.records
	if cmd.IsZero() {
		return
	}
	if t == nil || t.works {
		lo.p.Lost.MendArgs = lo.at(cmd)
		lo.p.Lost.Mend = lo.p.Lost.MendArgs.String()
	}
	if t != nil {
		lo.p.Lost.Mended = t.why
	}
}

// recordsCaution says what to do about wrong records of the best member, "" where it has none.
func (lo *losses) recordsCaution() string {
	l, best := &lo.p.Lost, lo.p.Best.Name
	n := l.Records.Count
	if n == 0 {
		return ""
	}
	says := fmt.Sprintf("%s of %s %s proven wrong: ", plural.Of(n, "record", "records"), best,
		plural.Form(n, "is", "are"))
	switch {
	case l.Mend != "":
		says += "before anything is reseeded from it, stop it, make a new data dir with the right content from its " +
			"own, use that in its place and plan again: " + l.Mend
		if l.Mended != "" {
			says += " (on a copy: " + l.Mended + ")"
		}
		return says
	case l.Mended != "":
		return says + "the right content cannot be brought back: " + l.Mended
	}
	says += "no database is known to hold the right content"
	if i := slices.IndexFunc(l.Records.Rows, func(r compare.LostRecord) bool { return r.Index > 0 }); i >= 0 {
		says += fmt.Sprintf("; the log has it (first: entry %d)", l.Records.Rows[i].Index)
	}
	return says
}

// save adds a command that saves what is lost.
func (l *Lost) save(c shell.Command) {
	l.Save, l.SaveArgs = append(l.Save, c.String()), append(l.SaveArgs, c)
}

// saveOthers adds the commands that write out all content of members with another history than the kept one: the log
// does not show what only they have.
func (lo *losses) saveOthers() {
	lo.p.Lost.Others = append(lo.ofOtherClusters(), lo.otherBackups()...)
	for _, name := range lo.p.Lost.Others {
		for _, src := range lo.named() {
			if src.Name == name {
				lo.p.Lost.save(extract(src, nil, -1))
			}
		}
	}
}

// extract is the command that writes what a member holds of the lost keys; all keys when they are too many, or no
// command can name one.
func extract(src compare.Source, keys []check.Bytes, all int) shell.Command {
	what := shell.Format("{}", place(src))
	flags := shell.Format("--format jsonl -o lost-held-by-{}.jsonl", shell.FileName(src.Name))
	dash := false
	if len(keys) == all && !slices.ContainsFunc(keys, func(k check.Bytes) bool {
		return len(k) == 0 || !k.Printable() ||
			!shell.CanPass(k)
	}) {
		for _, k := range keys {
			what, dash = what.With(k), dash || k[0] == '-'
		}
	}
	if dash { // after two dashes nothing is a flag
		return shell.Format("etcd-medic extract").Then(flags).With("--").Then(what)
	}
	return shell.Format("etcd-medic extract").Then(what).Then(flags)
}

func place(src compare.Source) string {
	if src.Where != "" {
		return src.Where
	}
	return src.Name
}

func nowhere(r *compare.Report) (entries int, proposers []string) {
	if r.Best == nil {
		return 0, nil
	}
	return r.Best.Lost.Nowhere(r.SourceNames())
}

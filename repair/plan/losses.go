package plan

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/shell"
)

// lost says what keeping the best member loses and how to save it.
func (pl *planner) lost() {
	pl.p.Lost = Lost{}
	if pl.r.Best == nil {
		pl.saveOthers()
		return
	}
	l := pl.r.Best.Lost
	pl.p.Lost = Lost{CommittedEntries: l.CommittedEntries, Keys: l.Keys, Entries: l.Entries, Behind: l.Behind,
		Unproven: l.Unproven}
	held := map[string]bool{}
	for _, e := range l.Entries {
		for _, h := range e.HeldBy {
			held[h] = true
		}
	}
	for _, src := range pl.r.Sources {
		if held[src.Name] {
			pl.p.Lost.save(pl.extract(src, l.KeyNames, l.Keys))
		}
	}
	if !l.Command.IsZero() {
		places := map[string]string{}
		for _, src := range pl.r.Sources {
			places[src.Name] = pl.place(src)
		}
		pl.p.Lost.save(l.Command.At(places).Then(shell.Format("> lost-entries.jsonl")))
	}
	pl.saveOthers()
}

// save adds a command that saves what is lost.
func (l *Lost) save(c shell.Command) {
	l.Save, l.SaveArgs = append(l.Save, c.String()), append(l.SaveArgs, c)
}

// saveOthers adds the commands that write out all content of members with another history than the kept one: the log
// does not show what only they have.
func (pl *planner) saveOthers() {
	for _, name := range append(pl.foreign(), pl.otherBackups()...) {
		for _, src := range pl.r.Sources {
			if src.Name == name {
				pl.p.Lost.save(pl.extract(src, nil, -1))
			}
		}
	}
}

// extract is the command that writes what a member holds of the lost keys; all keys when they are too many, or no
// command can name one.
func (pl *planner) extract(src compare.Source, keys []check.Bytes, all int) shell.Command {
	what := shell.Format("{}", pl.place(src))
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

func (pl *planner) place(src compare.Source) string {
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

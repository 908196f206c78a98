package repair

import (
	"strings"

	"al.essio.dev/pkg/shellescape"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// lost says what keeping the best member gives up and how to save it.
func (pl *planner) lost() {
	pl.p.Lost = Lost{}
	if pl.r.Best == nil {
		pl.saveOthers()
		return
	}
	l := pl.r.Best.Lost
	pl.p.Lost = Lost{CommittedEntries: l.CommittedEntries, Keys: l.Keys, Entries: l.Entries, Unproven: l.Unproven}
	held := map[string]bool{}
	for _, e := range l.Entries {
		for _, h := range e.HeldBy {
			held[h] = true
		}
	}
	for _, src := range pl.r.Sources {
		if held[src.Name] {
			pl.p.Lost.Save = append(pl.p.Lost.Save, pl.extract(src, l.KeyNames, l.Keys))
		}
	}
	if l.Command != "" {
		cmd := l.Command
		for _, src := range pl.r.Sources {
			cmd = strings.Replace(cmd, " "+src.Name+" ", " "+shellescape.Quote(pl.place(src))+" ", 1)
		}
		pl.p.Lost.Save = append(pl.p.Lost.Save, cmd+" > lost-entries.jsonl")
	}
	pl.saveOthers()
}

// saveOthers adds the commands that write out, whole, what members hold that have another history than the one that is kept: there is no
// telling from the log what only they have.
func (pl *planner) saveOthers() {
	for _, name := range append(pl.foreign(), pl.otherBackups()...) {
		for _, src := range pl.r.Sources {
			if src.Name == name {
				pl.p.Lost.Save = append(pl.p.Lost.Save, pl.extract(src, nil, -1))
			}
		}
	}
}

// extract is the command that writes what a member holds of the lost keys; all keys when they are too many or no text.
func (pl *planner) extract(src compare.Source, keys []check.Bytes, all int) string {
	cmd := "etcd-medic extract " + shellescape.Quote(pl.place(src))
	if len(keys) == all {
		for _, k := range keys {
			if !k.Printable() {
				cmd = "etcd-medic extract " + shellescape.Quote(pl.place(src))
				break
			}
			cmd += " " + shellescape.Quote(string(k))
		}
	}
	return cmd + " --format jsonl -o lost-held-by-" + fileName(src.Name) + ".jsonl"
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
	return r.Best.Lost.Nowhere(r.Sources)
}

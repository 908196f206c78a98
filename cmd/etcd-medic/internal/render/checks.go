package render

import (
	"fmt"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/compare/check"
)

// checksSection writes which checks hold, and why some could not be made.
type checksSection struct{ *page }

// write counts outcomes and lists the checks that do not hold, or not of all members. With all, each check gets a line.
func (p checksSection) write(checks []compare.CheckOutcome, all bool) {
	if len(checks) == 0 {
		return
	}
	p.section("checks")
	var holds, violated, open []compare.CheckOutcome
	for _, c := range checks {
		switch c.Outcome {
		case check.Holds:
			holds = append(holds, c)
		case check.Violated:
			violated = append(violated, c)
		default: // the zero value too: an unchecked item is never reported as healthy
			open = append(open, c)
		}
	}
	var ids []string
	for _, c := range violated {
		ids = append(ids, string(c.ID))
	}
	names := ""
	if len(ids) > 0 && !all {
		names = " (" + strings.Join(ids, " ") + ")"
	}
	p.text("  ", fmt.Sprintf("%d hold, %d violated%s, %d could not be checked", len(holds), len(violated), names,
		len(open)))
	for _, c := range violated {
		if all {
			p.text("  "+pad(string(c.ID), 5)+" violated     ", c.Title)
		}
	}
	ofBackup := func(c compare.CheckOutcome) bool { return c.ID.OfBackups() }
	p.notChecked(open, !slices.ContainsFunc(holds, ofBackup) && !slices.ContainsFunc(violated, ofBackup))
	for _, c := range holds {
		switch {
		case c.Reason != "":
			p.text("  "+pad(string(c.ID), 5)+" holds        ", c.Title+"; "+c.Reason)
		case all:
			p.text("  "+pad(string(c.ID), 5)+" holds        ", c.Title)
		}
	}
}

// notChecked lists the checks that were not made, grouped by reason. forBackups is true if no check of backups was
// made.
func (p checksSection) notChecked(open []compare.CheckOutcome, forBackups bool) {
	var reasons []string
	ids := map[string][]string{}
	for _, c := range open {
		if forBackups && c.ID.OfBackups() {
			continue
		}
		if ids[c.Reason] == nil {
			reasons = append(reasons, c.Reason)
		}
		ids[c.Reason] = append(ids[c.Reason], string(c.ID))
	}
	var said []string
	for _, r := range reasons {
		said = append(said, strings.Join(ids[r], " ")+": "+r)
	}
	if forBackups && slices.ContainsFunc(open,
		func(c compare.CheckOutcome) bool { return c.ID.OfBackups() }) {
		said = append(said, "B01 to B09: for backups (etcd-medic verify)")
	}
	if len(said) > 0 {
		p.text("  not checked  ", strings.Join(said, "; "))
	}
}

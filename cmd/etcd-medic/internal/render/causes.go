package render

import (
	"fmt"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare"
	"github.com/etcd-medic/etcd-medic/internal/plural"
	"github.com/etcd-medic/etcd-medic/release"
	"github.com/etcd-medic/etcd-medic/shell"
)

// causesSection writes what happened, as far as it is known.
type causesSection struct {
	*page
	// named is the cause that the first sentence of the page names, nil if it names none.
	named *compare.Cause
}

// write writes the main causes in full, and additional ones in one line each.
func (p causesSection) write(causes []compare.Cause) {
	shown := 0
	for _, c := range causes {
		if c.Secondary {
			continue
		}
		if shown++; shown == 1 {
			p.section("causes")
		} else {
			p.line("")
		}
		p.cause(&c)
	}
	if shown == len(causes) {
		return
	}
	p.section("also found")
	for _, c := range causes {
		if c.Secondary {
			p.text("  ", fmt.Sprintf("%s (%s): %s; because of %s", c.ID, c.Certainty, c.Title,
				strings.Join(c.Because, ", ")))
			p.command("    $ ", shell.Format("etcd-medic explain {}", c.ID))
		}
	}
}

func (p causesSection) cause(c *compare.Cause) {
	title := ": " + c.Title
	if p.named != nil && p.named.ID == c.ID { // the page starts with its title
		title = ""
	}
	p.text("  ", fmt.Sprintf("%s (%s)%s", c.ID, c.Certainty, title))
	p.pairs("    ",
		[2]string{"because of", strings.Join(ranges(c.Because), ", ") + onWhom(c.Members)},
		[2]string{"refuted by", c.RefutedBy},
		[2]string{"affected", release.Text(c.Affected)},
		[2]string{"fixed in", release.Text(c.FixedIn)},
		[2]string{"recovery", c.Recovery},
		[2]string{"loss", c.Loss},
		[2]string{"see", strings.Join(c.Refs, " ")})
}

func onWhom(members []string) string {
	if len(members) == 0 {
		return ""
	}
	return " on " + plural.List(members)
}

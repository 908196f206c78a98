package dossier

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/diff"
	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/compare/timeline"
	"github.com/etcd-medic/etcd-medic/release"
)

// Difference is one bucket whose rows differ, column by column, so that a hundred thousand rows fit into a page.
type Difference struct {
	Bucket string `json:"bucket"`
	// Equal is unknown if it could not be compared; Reason says why.
	Equal       release.Answer `json:"equal"`
	Reason      string         `json:"reason,omitempty"`
	Compared    int            `json:"compared"`
	Differ      int            `json:"differ"`
	SameContent int            `json:"sameContent"`
	Members     []string       `json:"members"`
	// Only counts the rows that only one member has, by member.
	Only []int `json:"only"`
	// Shared and Rest are the escaped keys: how many bytes a key has in common with the previous one, and its rest.
	Shared []int    `json:"shared"`
	Rest   []string `json:"rest"`
	// Same is 1 if the rows differ only in revision numbers.
	Same []int `json:"same"`
	// Objects names the Kubernetes objects of the keys, by row.
	Objects map[int]string `json:"objects,omitempty"`
	// Cells are by member.
	Cells []Cells `json:"cells"`
}

// Cells are one member's versions of the rows. The numbers are set for bucket key, Text for other buckets. A row that
// the member does not have has Mod 0 and Text "".
type Cells struct {
	Mod     []int64  `json:"mod,omitempty"`
	Create  []int64  `json:"create,omitempty"`
	Version []int64  `json:"version,omitempty"`
	Lease   []string `json:"lease,omitempty"`
	Len     []int    `json:"len,omitempty"`
	// SHA is "=" if the digest equals that of the previous member.
	SHA  []string `json:"sha,omitempty"`
	Text []string `json:"text,omitempty"`
	// Out are rows whose version on this member cannot be compared.
	Out []int `json:"out,omitempty"`
}

func difference(b *diff.Bucket, members []*evidence.Member) Difference {
	d := Difference{Bucket: b.Name, Equal: b.Equal, Reason: b.Reason, Compared: b.Compared, Differ: b.Differ,
		SameContent: b.SameContent, Only: b.Only,
		Shared: []int{}, Rest: []string{}, Same: []int{}, Members: []string{}, Cells: make([]Cells, len(members))}
	if d.Reason == "" {
		d.Reason = b.Limits
	}
	for _, m := range members {
		d.Members = append(d.Members, m.Label())
	}
	isKey := b.Name == "key"
	last := ""
	for n := range b.Rows {
		row := &b.Rows[n]
		key := timeline.EscapeKey(row.Key)
		if row.Kind != diff.WholeRow {
			key += " (" + string(row.Kind) + ")"
		}
		shared := sharedPrefix(last, key)
		d.Shared, d.Rest = append(d.Shared, shared), append(d.Rest, key[shared:])
		last = key
		same := 0
		if row.SameContent {
			same = 1
		}
		d.Same = append(d.Same, same)
		before := ""
		for i := range members {
			before = d.Cells[i].add(row.Cells[i], isKey, before)
			if slices.Contains(row.Out, i) {
				d.Cells[i].Out = append(d.Cells[i].Out, n)
			}
		}
		if o := object(row); o != "" {
			if d.Objects == nil {
				d.Objects = map[int]string{}
			}
			d.Objects[n] = o
		}
	}
	return d
}

// add appends a member's version of a row. before is the digest of the previous member.
func (c *Cells) add(cell *diff.Cell, isKey bool, before string) string {
	if !isKey {
		text := ""
		if cell != nil {
			text = timeline.Clip(cell.Text, 1000)
			if text == "" {
				text = "present"
			}
		}
		c.Text = append(c.Text, text)
		return ""
	}
	if cell == nil {
		cell = &diff.Cell{}
	}
	lease := ""
	if cell.Lease != 0 {
		lease = strconv.FormatUint(uint64(cell.Lease), 16)
	}
	sha := cell.ValueDigest
	if sha != "" && sha == before {
		sha = "="
	}
	c.Mod, c.Create, c.Version = append(c.Mod, cell.Mod), append(c.Create, cell.Create), append(c.Version, cell.Version)
	c.Lease, c.Len, c.SHA = append(c.Lease, lease), append(c.Len, cell.ValueLen), append(c.SHA, sha)
	if cell.ValueDigest == "" {
		return before
	}
	return cell.ValueDigest
}

// object returns kind, namespace and name of the row's Kubernetes object, "" if it is not one.
func object(row *diff.Row) string {
	for _, c := range row.Cells {
		if c == nil || c.Object.Kind == "" {
			continue
		}
		name := c.Object.Name
		if c.Object.Namespace != "" {
			name = c.Object.Namespace + "/" + name
		}
		return timeline.Clip(timeline.EscapeKey([]byte(c.Object.Kind+" "+name)), 200)
	}
	return ""
}

// sharedPrefix returns the length of the common start of two texts in bytes, cut at a rune.
func sharedPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && n < len(b) && !utf8.RuneStart(b[n]) {
		n--
	}
	return n
}

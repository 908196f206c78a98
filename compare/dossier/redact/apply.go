package redact

import (
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/check"
	"github.com/etcd-medic/etcd-medic/compare/dossier"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Apply redacts the dossier in place. It removes paths of sources too: sources keep only their labels.
func (r *Redactor) Apply(d *dossier.Dossier) {
	rep := d.Report
	rep.Given = nil
	for i := range rep.Sources {
		rep.Sources[i].Where = ""
		rep.Given = append(rep.Given, rep.Sources[i].Name)
	}
	for i := range rep.Members {
		if db := rep.Members[i].DB; db != nil {
			for bucket, h := range db.Hashes {
				db.Hashes[bucket] = r.Digest(h)
			}
		}
	}
	r.columns(d)
	each(reflect.ValueOf(d), visitor{text: r.Text, bytes: r.bytes, command: r.command, nameless: r.mode != Clear})
	for i := range d.Differences {
		r.difference(&d.Differences[i])
	}
	d.Redaction = r.statement()
}

// columns redacts fields that are whole keys.
func (r *Redactor) columns(d *dossier.Dossier) {
	if r.mode == Clear {
		return
	}
	if t := d.Timeline; t != nil {
		for i := range t.Events {
			for k, key := range t.Events[i].Keys {
				t.Events[i].Keys[k] = r.escaped(key)
			}
		}
		for i := range t.Notes {
			t.Notes[i].Line = "" // a line can name a key that is no longer in any source
		}
	}
	for i := range d.Storage {
		for k := range d.Storage[i].Prefixes {
			if p := &d.Storage[i].Prefixes[k]; !p.Rest {
				p.Name = r.KeyPrefix(p.Name)
			}
		}
	}
	if d.Report.Best == nil {
		return
	}
	lost := &d.Report.Best.Lost
	for k, key := range lost.KeyNames {
		lost.KeyNames[k] = check.Bytes(r.Key(string(key)))
	}
	for i := range lost.Records.Rows {
		x := &lost.Records.Rows[i]
		x.Key = check.Bytes(r.Key(string(x.Key)))
	}
}

// escaped redacts a key that is written with escapes, or shortened.
func (r *Redactor) escaped(key string) string {
	if raw, err := strconv.Unquote(`"` + key + `"`); err == nil {
		key = raw
	}
	return r.Key(key)
}

// difference redacts the keys of a bucket's rows, and the names of their Kubernetes objects.
func (r *Redactor) difference(d *dossier.Difference) {
	for i := range d.Cells {
		for n, sha := range d.Cells[i].SHA {
			d.Cells[i].SHA[n] = r.Digest(sha)
		}
	}
	if r.mode == Clear || d.Bucket != "key" {
		return
	}
	key, last := "", ""
	for n := range d.Rest {
		key = key[:d.Shared[n]] + d.Rest[n]
		now := r.escaped(key)
		d.Shared[n] = 0
		for d.Shared[n] < min(len(last), len(now)) && last[d.Shared[n]] == now[d.Shared[n]] {
			d.Shared[n]++
		}
		for d.Shared[n] > 0 && d.Shared[n] < len(now) && !utf8.RuneStart(now[d.Shared[n]]) {
			d.Shared[n]--
		}
		d.Rest[n], last = now[d.Shared[n]:], now
	}
	for n, object := range d.Objects {
		kind, _, _ := strings.Cut(object, " ")
		d.Objects[n] = kind
	}
}

func (r *Redactor) bytes(b check.Bytes) check.Bytes {
	if i, ok := r.find(string(b)); ok {
		return check.Bytes(r.words[i].with)
	}
	return check.Bytes(r.Text(string(b)))
}

// command redacts arguments, but not the program and its sub-commands.
func (r *Redactor) command(c shell.Command) shell.Command {
	program := c.Program()
	words := 2
	if len(program) > 1 && (program[1] == "repair" || program[1] == "node" || program[1] == "member") {
		words = 3
	}
	program = program[:min(len(program), words)]
	return c.Rewrite(func(arg string) string {
		if slices.Contains(program, arg) {
			return arg
		}
		if i, ok := r.find(arg); ok {
			return r.words[i].with
		}
		return r.Text(arg)
	})
}

// find returns the position of the word with this text.
func (r *Redactor) find(text string) (int, bool) {
	return slices.BinarySearchFunc(r.words, text, func(w word, t string) int { return strings.Compare(w.text, t) })
}

// Text redacts the keys and digests of values inside a text.
func (r *Redactor) Text(s string) string {
	s = valueDigest.ReplaceAllStringFunc(s, func(m string) string {
		word, digest, _ := strings.Cut(m, " ")
		return word + " " + r.Digest(digest)
	})
	if len(r.words) == 0 {
		return s
	}
	var b strings.Builder
	for p := 0; p < len(s); {
		if w := r.at(s, p); w != nil {
			b.WriteString(w.with)
			p += len(w.text)
			continue
		}
		_, n := utf8.DecodeRuneInString(s[p:])
		b.WriteString(s[p : p+n])
		p += n
	}
	return b.String()
}

// valueDigest is a digest of a value inside a text.
var valueDigest = regexp.MustCompile(`\b(?:sha256|digest) [0-9a-f]{16}\b`)

// at returns the longest word that starts at p, nil if there is none.
func (r *Redactor) at(s string, p int) *word {
	rest := s[p:]
	for len(rest) > 0 {
		i := sort.Search(len(r.words), func(i int) bool { return r.words[i].text > rest }) - 1
		if i < 0 {
			return nil
		}
		w := &r.words[i]
		if strings.HasPrefix(rest, w.text) && bounded(s, p, w) {
			return w
		}
		n := 0
		for n < min(len(rest), len(w.text)) && rest[n] == w.text[n] {
			n++
		}
		rest = rest[:min(n, len(rest)-1)]
	}
	return nil
}

// bounded reports whether a spelling at p can be a key: it is not in the middle of a word, and a name is marked as
// data.
func bounded(s string, p int, w *word) bool {
	end := p + len(w.text)
	if w.name {
		return p > 0 && strings.IndexByte(`"'=`, s[p-1]) >= 0 && (end == len(s) || !isWordByte(s[end])) || p == 0 &&
			end == len(s)
	}
	if p > 0 && isWordByte(s[p]) && isWordByte(s[p-1]) {
		return false
	}
	return end == len(s) || !isWordByte(s[end-1]) || !isWordByte(s[end])
}

func (r *Redactor) statement() string {
	keys := map[Mode]string{
		Clear: "Keys are shown.",
		Prefix: "At most the first two parts of keys are shown, the rest as a hash with a salt that was " +
			"thrown away.",
		Hashed: "Each part of a key is shown as a hash with a salt that was thrown away.",
	}[r.mode]
	if r.mode != Clear {
		keys += " Names of Kubernetes objects and lines of server logs are left out."
	}
	return keys + " User names, role names, member names and addresses are shown. Values are shown as length and a " +
		"keyed " +
		"digest; passwords, password hashes and tokens are left out."
}

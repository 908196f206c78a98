package evidence

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Mistaken is a file that is readable but no source: what it is, and what reads it.
type Mistaken struct {
	// What is a noun with its article, such as "a repair plan of etcd-medic".
	What string
	// Hint says which command reads it, or how to make a source of it.
	Hint string
	// Ours says that this program wrote it.
	Ours bool
}

// ourTool is the head of the documents that this program writes, in JSON and in YAML.
var ourTool = regexp.MustCompile(`(?s)"?schemaVersion"?: *\d+,?\s+"?tool"?: *\{?\s+"?name"?: *"?etcd-medic"?`)

// packings are files that have to be unpacked before they are a source.
var packings = []struct{ magic, name, unpack string }{
	{"\x1f\x8b", "a file packed with gzip", "gzip -dk"},
	{"\x28\xb5\x2f\xfd", "a file packed with zstd", "zstd -d"},
	{"\xfd7zXZ\x00", "a file packed with xz", "xz -dk"},
	{"BZh", "a file packed with bzip2", "bzip2 -dk"},
	{"PK\x03\x04", "a zip archive", "unzip"},
}

// RecogniseMistaken looks at the first bytes of a file that is not a source and says what it is. The zero value means
// that they do not show it.
func RecogniseMistaken(head []byte) Mistaken {
	text := bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	switch {
	case bytes.HasPrefix(text, []byte("# etcd-medic repair plan")),
		ourTool.Match(text) && bytes.Contains(text, []byte("\ndigest: ")):
		return Mistaken{What: "a repair plan of etcd-medic", Ours: true,
			Hint: "etcd-medic repair rehearse and etcd-medic repair apply read it"}
	case ourTool.Match(text):
		return Mistaken{What: "a report of etcd-medic", Ours: true,
			Hint: "name the data dirs or backups that it is about; they are listed in it"}
	}
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return Mistaken{What: p.name,
				Hint: "unpack it first (" + p.unpack + "); etcd-medic verify reads a backup in it as it is"}
		}
	}
	return Mistaken{What: textOf(text)}
}

// textOf returns what kind of text the head is, "" if it is not text. The head may end in the middle of a character.
func textOf(head []byte) string {
	for n := 0; n < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); n++ {
		head = head[:len(head)-1]
	}
	if !utf8.Valid(head) || bytes.ContainsFunc(head, func(r rune) bool {
		return r < ' ' && !strings.ContainsRune("\n\t\r\f", r)
	}) {
		return ""
	}
	head = bytes.ToLower(bytes.TrimSpace(head))
	switch {
	case len(head) == 0:
		return ""
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")):
		return "an HTML page"
	case head[0] == '{', head[0] == '[':
		return "JSON text"
	}
	return "a text file"
}

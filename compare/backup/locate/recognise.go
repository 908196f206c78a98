package locate

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
)

// what is the kind of a file according to its first bytes.
type what int

const (
	isOther what = iota
	isDatabase
	isZip
	isTar
	isEmpty
	isZeros
	isText
	isJSON
	isEncrypted
	isUnsupported
	isOurs
)

// unreadableContents are contents that this package cannot read.
var unreadableContents = []struct {
	magic string
	what  what
	name  string
}{
	{"age-encryption.org/", isEncrypted, "age"},
	{"-----BEGIN PGP MESSAGE", isEncrypted, "gpg"},
	{"Salted__", isEncrypted, "openssl"},
	{"\x04\x22\x4d\x18", isUnsupported, "lz4"},
	{"7z\xbc\xaf\x27\x1c", isUnsupported, "7-Zip"},
	{"\x89LZO\x00", isUnsupported, "lzop"},
	{"Rar!", isUnsupported, "RAR"},
}

// recognise returns the kind of a file from its head, and the name of a content that cannot be read.
func recognise(head []byte) (what, string) {
	for _, f := range unreadableContents {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.what, f.name
		}
	}
	switch {
	case len(head) == 0:
		return isEmpty, ""
	case len(head) >= 265 && bytes.HasPrefix(head[257:],
		[]byte("ustar")): // before the database in it is found after the tar header
		return isTar, ""
	case evidence.IsDatabaseHead(head):
		return isDatabase, ""
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return isZip, ""
	case len(bytes.Trim(head, "\x00")) == 0:
		return isZeros, ""
	case isPrintable(head):
		if m := evidence.RecogniseMistaken(head); m.Ours {
			return isOurs, m.What
		}
		if t := bytes.TrimLeft(head, " \t\r\n"); bytes.HasPrefix(t, []byte("{")) || bytes.HasPrefix(t, []byte("[")) {
			return isJSON, ""
		}
		return isText, ""
	}
	return isOther, ""
}

// isPrintable reports whether the head is text; it may end in the middle of a character.
func isPrintable(head []byte) bool {
	if len(head) > 4096 {
		head = head[:4096]
	}
	for n := 0; n < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head); n++ {
		head = head[:len(head)-1]
	}
	return utf8.Valid(head) && !bytes.ContainsFunc(head,
		func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != '\f' })
}

// packedSuffixes are removed from a name before it is matched.
var packedSuffixes = []string{".gz", ".zst", ".zstd", ".xz", ".zip", ".bz2", ".tgz", ".tar", ".z", ".zlib"}

func bareName(name string) string {
	name = strings.ToLower(filepath.Base(name))
	for again := true; again; {
		again = false
		for _, s := range packedSuffixes {
			if strings.HasSuffix(name, s) && len(name) > len(s) {
				name, again = strings.TrimSuffix(name, s), true
			}
		}
	}
	return name
}

// sideFiles are suffixes of files next to backups that are not backups.
var sideFiles = []string{".sha256", ".sha256sum", ".sha512", ".sha1", ".md5", ".sum", ".sig", ".asc", ".json", ".yaml",
	".yml", ".txt", ".log", ".md", ".prom",
	".sh", ".meta", ".conf", ".crt", ".pem", ".key", ".lock", ".pid", ".service", ".timer"}

// unfinished are suffixes of files that are still being written, or whose writer was interrupted.
var unfinished = []string{".part", ".partial", ".tmp", ".temp", ".crdownload", ".filepart"}

func hasSuffix(name string, suffixes []string) bool {
	name = strings.ToLower(name)
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// isNamedBackup reports whether the name says that the file is a backup, so that other content means damage. It knows
// the names by etcdctl users, k3s, rke2, etcdadm and the scripts around kubeadm.
func isNamedBackup(name string, w what) bool {
	bare := bareName(name)
	if hasSuffix(bare, sideFiles) {
		return false
	}
	if strings.HasSuffix(bare, ".db") {
		return true
	}
	if w == isJSON {
		return false // k3s writes a JSON file with the name of each snapshot
	}
	return strings.Contains(bare, "snapshot") || w != isText &&
		(strings.Contains(bare, "etcd") || strings.Contains(bare, "backup"))
}

// timeStamp is a date, a time or seconds since 1970 in a file name.
var timeStamp = regexp.MustCompile(`\d{4,}([-_.:tT+ ]?\d{1,2})*[zZ]?`)

// seriesOf returns the name of a backup without its time stamp, which is the same for all backups of a series.
func seriesOf(path string) string {
	return filepath.Join(filepath.Dir(path), timeStamp.ReplaceAllString(bareName(path), "*"))
}

// why returns why a file is not a backup.
func (w what) why(name string) string {
	switch w {
	case isEmpty:
		return "an empty file that is not named like a backup"
	case isZeros:
		return "zero bytes only, and not named like a backup"
	case isText:
		return "a text file"
	case isJSON:
		return "a JSON file"
	case isEncrypted:
		return "encrypted with " + name
	case isUnsupported:
		return fmt.Sprintf("packed with %s, which is not supported", name)
	case isOurs:
		return name
	case isZip, isTar:
		return "an archive in an archive"
	}
	return "not an etcd database, and not named like a backup"
}

package evidence

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/etcd-medic/etcd-medic/internal/objects"
)

// nameSources gives every source a label: the given one, else the shortest unique tail of its path.
func (s *Set) nameSources(sources []*Source) {
	for _, src := range sources {
		src.Name = src.spec.Name
	}
	for depth := 1; depth <= 8; depth++ {
		seen := map[string]int{}
		for _, src := range sources {
			if src.spec.Name == "" {
				src.Name = pathTail(s.givenPath(src.Where), depth)
			}
			seen[src.Name]++
		}
		if len(seen) == len(sources) {
			return
		}
	}
	uniq(sources)
}

// givenPath returns a path as the user knows it: what was unpacked to scratch is in its archive.
func (s *Set) givenPath(where string) string {
	for dir, archive := range s.unpacked {
		if rel, err := filepath.Rel(dir, where); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(archive, rel)
		}
	}
	return where
}

// uniq numbers labels that are still equal, such as one path given twice.
func uniq(sources []*Source) {
	seen := map[string]int{}
	for _, src := range sources {
		seen[src.Name]++
		if n := seen[src.Name]; n > 1 {
			src.Name = fmt.Sprintf("%s#%d", src.Name, n)
		}
	}
}

func pathTail(p string, depth int) string {
	if isEndpoint(p) {
		_, host, _ := strings.Cut(p, "://")
		return strings.TrimRight(host, "/")
	}
	if objects.IsURL(p) { // without the parameters
		_, p, _ = strings.Cut(objects.Shown(p), "://")
	}
	p = filepath.Clean(p)
	if abs, err := filepath.Abs(p); err == nil && (p == "." || p == "..") {
		p = abs
	}
	var parts []string
	for len(parts) < depth && p != "." && p != string(filepath.Separator) {
		parts = append([]string{filepath.Base(p)}, parts...)
		p = filepath.Dir(p)
	}
	tail := filepath.ToSlash(filepath.Join(parts...))
	if filepath.Dir(p) == p && filepath.IsAbs(p) && len(parts) < depth {
		// The whole path is absolute and needs no prefix.
		return filepath.ToSlash(p) + tail
	}
	return tail
}

// Argument returns the command line argument for a source with the same label. It is "" if there is none: the source
// was streamed, or its WAL is elsewhere. A source from an archive is ARCHIVE#PATH.
func (s *Set) Argument(src *Source) string {
	where := src.Where
	if src.spec.WALDir != "" {
		return ""
	}
	for _, dir := range s.scratch {
		rel, err := filepath.Rel(dir, where)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		archive := s.unpacked[dir]
		if where = archive + "#" + filepath.ToSlash(rel); archive == "" {
			return ""
		}
	}
	if strings.HasPrefix(where, "-") {
		where = "./" + where // otherwise it would be read as a flag
	}
	named := src.Name + "=" + where
	if spec, err := ParseSpec(named); where != src.Name && err == nil && spec.Name == src.Name &&
		!strings.HasPrefix(named, "-") {
		return named
	}
	if spec, err := ParseSpec(where); err != nil || spec.Name != "" {
		where = "./" + where // otherwise its start would be read as a label
	}
	return where
}

// relabel uses the members' own names where the user gave none, if they are known and unique, and no other source is
// called so by its path.
func (s *Set) relabel() {
	seen := map[string]int{}
	for _, m := range s.Members {
		name := m.NodeName
		if m.Source.spec.Name != "" {
			name = m.Source.spec.Name
		}
		seen[name]++
	}
	own := map[*Member]bool{}
	for _, m := range s.Members {
		if m.Source.spec.Name == "" && m.NodeName != "" && seen[m.NodeName] == 1 && m.Source.Kind == KindDataDir {
			own[m] = true
		}
	}
	for s.dropTaken(own) { // what is dropped may have the name of another one
		continue
	}
	for m := range own {
		m.Source.Name = m.NodeName
	}
}

// dropTaken takes members out of own whose name is that of a source which is not in it. It reports whether there were
// any.
func (s *Set) dropTaken(own map[*Member]bool) (dropped bool) {
	paths := map[string]bool{}
	for _, m := range s.Members {
		if !own[m] {
			paths[m.Source.Name] = true
		}
	}
	for m := range own {
		if paths[m.NodeName] {
			delete(own, m)
			dropped = true
		}
	}
	return dropped
}

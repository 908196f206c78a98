package locate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/internal/objects"
)

// label gives every item a unique label: the given name, with the path for files of a named folder, else the shortest
// unique tail of the path.
func label(items []*Item) {
	perName := map[string]int{}
	for _, it := range items {
		perName[it.name+"\x00"+it.Given]++
	}
	depth := make([]int, len(items))
	for i, it := range items {
		depth[i] = 1
		if it.name != "" {
			it.Label, depth[i] = it.name, 0
			if it.FromFolder && (isDir(it.Given) || perName[it.name+"\x00"+it.Given] > 1) {
				it.Label = it.name + "/" + inside(it)
			}
		}
	}
	for again := true; again; {
		again = false
		seen := map[string][]int{}
		for i, it := range items {
			if depth[i] > 0 {
				it.Label = tail(it.Shown, depth[i])
			}
			seen[it.Label] = append(seen[it.Label], i)
		}
		for _, same := range seen {
			if len(same) < 2 {
				continue
			}
			for _, i := range same {
				if depth[i] > 0 && tail(items[i].Shown, depth[i]+1) != items[i].Label {
					depth[i]++
					again = true
				}
			}
		}
	}
	number(items)
}

// inside returns the path of an item below its argument.
func inside(it *Item) string {
	rel, err := filepath.Rel(it.Given, it.Shown)
	if err != nil || rel == "." {
		rel = filepath.Base(it.Shown)
	}
	return filepath.ToSlash(rel)
}

// number numbers labels that are still equal, such as one name given twice.
func number(items []*Item) {
	used := map[string]bool{}
	for _, it := range items {
		base := it.Label
		for n := 2; used[it.Label]; n++ {
			it.Label = fmt.Sprintf("%s#%d", base, n)
		}
		used[it.Label] = true
	}
}

// tail returns the last parts of a path. It never cuts a URL.
func tail(p string, parts int) string {
	if evidence.IsEndpoint(p) {
		return p
	}
	if objects.IsURL(p) {
		if split := strings.Split(p, "/"); len(split)-3 >= parts { // scheme, nothing, bucket, key
			return strings.Join(split[len(split)-parts:], "/")
		}
		return p
	}
	if abs, err := filepath.Abs(p); err == nil && (p == "." || strings.HasSuffix(p, "..")) {
		p = abs
	}
	p = filepath.ToSlash(filepath.Clean(p))
	split := strings.Split(p, "/")
	if len(split) <= parts || split[0] == "" && len(split) == parts+1 {
		return p
	}
	return strings.Join(split[len(split)-parts:], "/")
}

// dropRepeated removes a file that was found through several arguments, unless it was named itself.
func dropRepeated(f *Found) {
	type place struct {
		path  string
		entry int
		kind  what
	}
	seen := map[place]*Item{}
	kept := f.Items[:0]
	for _, it := range f.Items {
		at := place{it.path, it.entry, it.archive}
		if first := seen[at]; first != nil && it.path != "" && it.name == "" && it.Err == nil {
			f.Skipped = append(f.Skipped, Skipped{it.Shown, "the same file as " + first.Shown})
			continue
		}
		seen[at] = it
		kept = append(kept, it)
	}
	f.Items = kept
}

func compareText(a, b string) int { return cmp.Compare(a, b) }

// newest keeps the newest backup of each group, and items with an error.
func newest(items []*Item, which Newest) []*Item {
	if which == All {
		return items
	}
	best := map[string]*Item{}
	key := func(it *Item) string {
		if which == NewestOfSeries {
			return it.Series
		}
		return ""
	}
	for _, it := range items {
		if it.Err != nil || !it.FromFolder {
			continue
		}
		if b := best[key(it)]; b == nil || Later(it, b) {
			best[key(it)] = it
		}
	}
	return slices.DeleteFunc(slices.Clone(items),
		func(it *Item) bool { return it.Err == nil && it.FromFolder && best[key(it)] != it })
}

// Later reports whether a was written after b. Names, which often contain a time, decide if the times are equal.
func Later(a, b *Item) bool {
	return cmp.Or(a.Modified.Compare(b.Modified), cmp.Compare(a.Shown, b.Shown)) > 0
}

// NewestOfEach returns the newest item of each series. A file that was named itself is a separate series.
func NewestOfEach(items []*Item) map[*Item]bool {
	best := map[string]*Item{}
	out := map[*Item]bool{}
	for _, it := range items {
		if !it.FromFolder {
			out[it] = true
			continue
		}
		key := it.Given + "\x00" + it.Series
		if b := best[key]; it.Err == nil && (b == nil || Later(it, b)) {
			best[key] = it
		}
	}
	for _, it := range best {
		out[it] = true
	}
	return out
}

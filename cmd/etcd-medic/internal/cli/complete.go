package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/etcd-medic/etcd-medic/compare/evidence"
	"github.com/etcd-medic/etcd-medic/dumpdb"
	"github.com/etcd-medic/etcd-medic/dumplog"
	"github.com/etcd-medic/etcd-medic/shell"
)

// Bounds of the time and the number of suggestions of a completion.
const (
	completionTime = 2 * time.Second
	completions    = 100
)

// noFiles ends a completion whose words are not paths.
const noFiles = cobra.ShellCompDirectiveNoFileComp

// openForCompletion opens the database of a source; nil if there is none, or if it would have to be fetched or
// unpacked.
func openForCompletion(source string) *dumpdb.DB {
	spec, err := evidence.ParseSpec(source)
	if err != nil || evidence.IsEndpoint(spec.Where) || strings.Contains(spec.Where, ".tar") {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	parts, err := evidence.Locate(ctx, spec)
	if err != nil {
		return nil
	}
	defer func() { _ = parts.Close() }()
	if parts.DB == "" {
		return nil
	}
	db, err := dumpdb.Open(parts.DB)
	if err != nil {
		return nil
	}
	return db
}

// completeBuckets suggests the buckets of the first source.
func completeBuckets(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if len(args) > 1 {
		return nil, noFiles
	}
	db := openForCompletion(args[0])
	if db == nil {
		return nil, noFiles
	}
	defer func() { _ = db.Close() }()
	buckets, _ := db.Buckets()
	var out []string
	for _, b := range buckets {
		out = append(out, b.Name)
	}
	return out, noFiles
}

// completeKeys suggests the keys that start with the typed text. at is the argument that names the source.
func completeKeys(at int) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) <= at {
			return nil, noFiles
		}
		db := openForCompletion(args[at])
		if db == nil {
			return nil, noFiles
		}
		defer func() { _ = db.Close() }()
		return keysFrom(db, typed), noFiles
	}
}

// keysFrom returns keys that start with the prefix, in the order of their first records.
func keysFrom(db *dumpdb.DB, prefix string) (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	seen := map[string]bool{}
	for r, err := range db.Query(ctx, dumpdb.Query{Prefix: []byte(prefix)}) {
		if err != nil || len(out) == completions || ctx.Err() != nil {
			break
		}
		key := string(r.KV.Key)
		if r.Err != nil || seen[key] || !shell.IsSafe(r.KV.Key) || strings.ContainsAny(key, "\n\t") {
			continue
		}
		seen[key] = true
		out = append(out, key)
	}
	return out
}

// completeMembers suggests the members in the sources' databases.
func completeMembers(_ *cobra.Command, args []string, _ string) (out []string, _ cobra.ShellCompDirective) {
	seen := map[string]bool{}
	for _, a := range args[:min(len(args), 16)] {
		db := openForCompletion(a)
		if db == nil {
			continue
		}
		members, _ := db.Members()
		for i := range members {
			if name := members[i].Name; name != "" && !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
		_ = db.Close()
	}
	return out, noFiles
}

// completeKinds suggests the kinds of log entries.
func completeKinds(*cobra.Command, []string, string) (out []string, _ cobra.ShellCompDirective) {
	for _, k := range dumplog.Kinds() {
		out = append(out, string(k))
	}
	return out, noFiles
}

// offered is the annotation of a flag with the words that it can take.
const offered = "etcd-medic_words"

// offer sets the words that a completion suggests for a flag. The flag must exist.
func offer(cmd *cobra.Command, flag string, words ...string) {
	f := cmd.Flags().Lookup(flag)
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[offered] = words
}

// completeFlags adds suggestions to flags: their words, or what the named sources hold. Only a completion calls it:
// cobra keeps the flags of every tree of commands that has suggestions as long as the process lives.
func completeFlags(root *cobra.Command) {
	for _, c := range allCommands(root) {
		add := func(flag string, f cobra.CompletionFunc) { _ = c.RegisterFlagCompletionFunc(flag, f) }
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if words := f.Annotations[offered]; words != nil {
				add(f.Name, cobra.FixedCompletions(words, noFiles))
			}
			if form, ok := f.Value.(*formatFlag); ok {
				add(f.Name, cobra.FixedCompletions(form.words(), noFiles))
			}
			switch f.Name {
			case "best", "lost", "replace":
				add(f.Name, completeMembers)
			case "entry-type":
				add(f.Name, completeKinds)
			}
		})
		if c.Name() == "dumpdb" {
			c.ValidArgsFunction = completeBuckets
			for _, name := range []string{"key", "prefix", "history"} {
				add(name, completeKeys(0))
			}
		}
	}
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

// rulePrefix is the namespace whose names are not registered.
const rulePrefix = "ark:12345/r"

// byRules compares redirects by a template rule with redirects by records, of one server: the CPU time of each. As many
// names are asked for of either kind, so that what the server keeps of them is as much.
func (r *registryBench) byRules(ctx context.Context, w *tabwriter.Writer) (err error) {
	cores, err := twoCores()
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	first := benchName(0)[1:]
	for _, args := range [][]string{
		{"ns", "add", rulePrefix},
		{"rule", "add", rulePrefix, "{name:alnum}", "--to", "https://archive.example.org/items/{name}/view", "--example", rulePrefix + first + " https://archive.example.org/items/" + first + "/view"},
	} {
		if out, err := exec.CommandContext(ctx, r.stele, append(args, "--data", r.filled)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", args[0], err, out)
		}
	}
	loads := [2]load{}
	for i, kind := range []string{"ruled", "names"} {
		loads[i] = load{core: cores[1], script: filepath.Join(r.work, "load.lua"), names: filepath.Join(r.work, kind)}
	}
	if err := errors.Join(os.WriteFile(loads[0].script, []byte(loadScript), 0o644), writeRuled(loads[0].names, r.records), writeNames(loads[1].names, r.records)); err != nil {
		return err
	}
	s, _, err := r.startStele(ctx, cores[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := checkAnswers(ctx, s, r.records); err != nil {
		return err
	}
	got, err := locate(ctx, s.url+"/"+rulePrefix+first)
	if want := "https://archive.example.org/items/" + first + "/view"; err != nil || got != want {
		return fmt.Errorf("the rule leads to %q, and not to %q: %w", got, want, err)
	}
	s.settle(ctx)
	var each [2][]float64
	var ratios []float64
	for i := range rounds + 1 { // the first warms up
		var seen [2]float64
		for j := range loads {
			a, err := loads[j].run(ctx, s)
			if err != nil {
				return err
			}
			seen[j] = 1e6 / a.perCPU()
		}
		if i == 0 {
			continue
		}
		each[0], each[1], ratios = append(each[0], seen[0]), append(each[1], seen[1]), append(ratios, seen[0]/seen[1])
		progress("redirects, round %d of %d: %.1f us of CPU each by a rule, and %.1f us by a record", i, rounds, seen[0], seen[1])
	}
	fmt.Fprintf(w, "redirects by a template rule : by records, CPU time each\t%.1f us\t%.1f us\t%.2f\t\tat most 1.5\n", median(each[0]), median(each[1]), median(ratios))
	return nil
}

// writeRuled writes names for which the rule answers, which are as long as the registered ones.
func writeRuled(path string, n int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintln(w, "r"+benchName(i)[1:]) // Flush has the error
	}
	return errors.Join(w.Flush(), f.Close())
}

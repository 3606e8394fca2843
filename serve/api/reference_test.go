package api

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stele-id/stele/serve/api/openapi"
	"github.com/stele-id/stele/web"
)

var update = flag.Bool("update", false, "write docs/reference/api.md")

// TestReference compares docs/reference/api.md with the table of operations; -update writes it.
func TestReference(t *testing.T) {
	h := new(Handler)
	h.table = h.operations()
	view := openapi.Describe(h.description()).View("https://id.example.org")
	var b bytes.Buffer
	b.WriteString("# Operations of the API\n\n" +
		"This page is made from the table of operations that answers requests: `go test ./serve/api -run TestReference -update`\n" +
		"writes it, and a test compares it. [The interface for programs](../api.md) explains the API with examples. A running server has the same,\n" +
		"with the documents that operations take and give, at `/api/v1` for people and at `/api/v1/openapi.json` for programs.\n\n" +
		"Any request may have the header `" + versionParameter.name + "`: " + lowerFirst(versionParameter.about) + ".\n\n")
	describeProblems(&b, view)
	for _, g := range view.Groups {
		fmt.Fprintf(&b, "\n## %s\n\n| operation | request | what it does |\n|---|---|---|\n", g.Title)
		for _, op := range g.Operations {
			fmt.Fprintf(&b, "| [%s](#%s) | `%s %s` | %s |\n", op.Name, strings.ToLower(op.Name), op.Method, op.Path, cellText(op.Summary))
		}
		for _, op := range g.Operations {
			describeOperation(&b, &op)
		}
	}
	file := filepath.Join("..", "..", "docs", "reference", "api.md")
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, b.Bytes()) {
		t.Errorf("%s is not what the table says (%v); run go test ./serve/api -run TestReference -update", file, err)
	}
}

// describeOperation writes what a reader of the reference needs of an operation.
func describeOperation(b *bytes.Buffer, op *web.APIOperation) {
	fmt.Fprintf(b, "\n### %s\n\n`%s %s`\n\n%s.", op.Name, op.Method, op.Path, strings.TrimSuffix(op.Summary, "."))
	if op.About != "" {
		b.WriteString(" " + op.About)
	}
	b.WriteString("\n\n")
	if op.Role != "" {
		b.WriteString(op.Role + "\n\n")
	}
	own := slices.DeleteFunc(slices.Clone(op.Parameters), func(p web.APIField) bool { return p.Name == versionParameter.name })
	if len(own) > 0 {
		b.WriteString("| parameter | in | is | says |\n|---|---|---|---|\n")
		for _, p := range own {
			place := p.Place
			if p.Required {
				place += ", required"
			}
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", p.Name, place, cellText(p.Kind), cellText(p.About))
		}
		b.WriteByte('\n')
	}
	if len(op.Body) > 0 {
		b.WriteString("Takes " + bodyTexts(op.Body) + ".")
		if op.BodyAbout != "" {
			b.WriteString(" " + op.BodyAbout)
		}
		b.WriteString("\n\n")
	}
	var refused []string
	b.WriteString("| answer | says | body |\n|---|---|---|\n")
	for _, a := range op.Answers {
		if a.Status >= http.StatusBadRequest {
			refused = append(refused, fmt.Sprint(a.Status))
			continue
		}
		fmt.Fprintf(b, "| %d | %s | %s |\n", a.Status, cellText(a.About), bodyTexts(a.Bodies))
	}
	fmt.Fprintf(b, "\nProblems: %s.\n", strings.Join(refused, ", "))
}

// describeProblems writes what the statuses of problems say; it is the same for all operations.
func describeProblems(b *bytes.Buffer, v *web.API) {
	titles := make(map[int]web.APIAnswer)
	for _, g := range v.Groups {
		for _, op := range g.Operations {
			for _, a := range op.Answers {
				if a.Status >= http.StatusBadRequest {
					titles[a.Status] = a
				}
			}
		}
	}
	b.WriteString("Problems are `application/problem+json` (RFC 9457):\n\n| status | problem | says |\n|---|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(titles)) {
		fmt.Fprintf(b, "| %d | `%s` | %s |\n", status, titles[status].Problem, cellText(titles[status].About))
	}
}

func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// bodyTexts names the media types of bodies, and what they hold.
func bodyTexts(bodies []web.APIBody) string {
	texts := make([]string, len(bodies))
	for i, body := range bodies {
		if texts[i] = "`" + body.Type + "`"; body.Kind != "" {
			texts[i] += " (" + cellText(body.Kind) + ")"
		}
	}
	return strings.Join(texts, ", ")
}

// cellText returns a text for a cell of a table.
func cellText(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

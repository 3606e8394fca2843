// Package docs has the documents for people, so that a server can show those that belong to it.
// Decisions and examples are for those who read the source, and are not in it.
package docs

import "embed"

//go:embed *.md reference/*.md pictures/*.png
var files embed.FS

// Files returns the documents, in Markdown, and their pictures. Links in them are relative.
func Files() embed.FS { return files }

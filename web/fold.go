package web

import (
	"html/template"
	"text/template/parse"
)

// Fold writes the texts of a language into templates once: an action that calls t with a key and
// nothing else becomes what it would print. Half of the time of a page went into these. It is called
// before a template is executed.
func Fold(t *template.Template, text func(key string, args ...any) string) {
	for _, each := range t.Templates() {
		if each.Tree != nil {
			foldList(each.Tree.Root, text)
		}
	}
}

func foldList(list *parse.ListNode, text func(key string, args ...any) string) {
	if list == nil {
		return
	}
	for i, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if key, ok := constantText(n.Pipe); ok {
				// Quotation marks are escaped too, so it is right in attributes as well.
				list.Nodes[i] = &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: []byte(template.HTMLEscapeString(text(key)))}
			}
		case *parse.IfNode:
			foldBranch(&n.BranchNode, text)
		case *parse.RangeNode:
			foldBranch(&n.BranchNode, text)
		case *parse.WithNode:
			foldBranch(&n.BranchNode, text)
		}
	}
}

func foldBranch(n *parse.BranchNode, text func(key string, args ...any) string) {
	foldList(n.List, text)
	foldList(n.ElseList, text)
}

// constantText returns the key of an action that prints a text of the language without arguments.
func constantText(p *parse.PipeNode) (key string, ok bool) {
	if len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 2 {
		return "", false
	}
	name, isName := p.Cmds[0].Args[0].(*parse.IdentifierNode)
	argument, isText := p.Cmds[0].Args[1].(*parse.StringNode)
	if !isName || !isText || name.Ident != "t" {
		return "", false
	}
	return argument.Text, true
}

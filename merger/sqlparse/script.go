package sqlparse

// Piece is one statement of a script, with its place in it.
type Piece struct {
	// Start is where the statement's first token stands in the script.
	Start Pos
	// End is the byte offset behind its last token.
	End int
	// Terminated tells that a semicolon follows: at a prompt a statement without
	// one may go on.
	Terminated bool
	script     string
}

// Text returns the statement as written, without its semicolon.
func (p Piece) Text() string { return p.script[p.Start.Offset:p.End] }

// Parse reads the statement. Positions, also those of errors, count from the
// beginning of the script.
func (p Piece) Parse() (Statement, error) {
	ps := newParser(p.script[:p.End], p.Start)
	s := ps.statement()
	if ps.tok.kind != tokEOF {
		ps.trailing()
	}
	if ps.err != nil {
		return nil, ps.err
	}
	return s, nil
}

// Split cuts a script into its statements at the semicolons that stand outside
// of texts, quoted names and comments. Empty statements are left out. A text
// without end makes the rest of the script one piece.
func Split(script string) []Piece {
	var pieces []Piece
	l := lexer{src: script, pos: Pos{Line: 1, Col: 1}}
	cur := Piece{script: script}
	open := false
	for {
		t := l.next()
		end := t.kind == tokEOF || t.kind == tokIllegal && t.err.Incomplete
		if t.kind == tokIllegal && end && !open {
			cur.Start, open = t.pos, true
		}
		if end {
			if open {
				if t.kind == tokIllegal {
					cur.End = len(script)
				}
				pieces = append(pieces, cur)
			}
			return pieces
		}
		if t.kw == ";" {
			if open {
				cur.Terminated = true
				pieces = append(pieces, cur)
			}
			cur, open = Piece{script: script}, false
			continue
		}
		if !open {
			cur.Start, open = t.pos, true
		}
		cur.End = t.end()
	}
}

// Functions and types of an invented kernel.

struct node {
	struct node *next;
	char name[8];
	unsigned int bits : 5, number : 11;
	struct {
		union {
			long a;
			struct { int b; } in;
		};
		int deep;
	};
	const char *text;
};

typedef struct node *list;
enum kind { ROUND, SQUARE = 7 };

long work(struct node *it, int count) { return it->bits + count; }
int leaf(enum kind kind, const char *text, unsigned long long wide) { return kind + text[0] + (int)wide; }
list walk(const list it, void (*call)(int)) { call(1); return it->next; }

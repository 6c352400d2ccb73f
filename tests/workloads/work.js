// A program with a class, a map and JSON.
class Square {
	constructor(side) {
		this.side = side;
	}
	area() {
		let sum = 0;
		for (let step = 0; step < 2000; step++) sum += Math.sqrt(this.side * step);
		return sum;
	}
}

function hashing(numbers) {
	const sums = new Map();
	for (let number = 0; number < numbers; number++) {
		sums.set(number % 997, (sums.get(number % 997) || 0) + number);
	}
	return [...sums.values()].reduce((all, sum) => all + sum);
}

function json(numbers) {
	const list = Array.from({ length: numbers }, (_, number) => ({ number, name: 'x' + number }));
	return JSON.stringify(JSON.parse(JSON.stringify(list)));
}

let all = 0;
for (let round = 0; round < Number(process.argv[2]); round++) {
	all += new Square(round).area() + hashing(20000) + json(300).length;
}
console.log(all);

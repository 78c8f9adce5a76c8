"""EdgeFL beside Flower: the same model, data and clients, in turns on one machine.

What runs in Flower's environment (case, torch_client, bare_loop, flower_rounds, flower_echo) imports nothing of EdgeFL:
arrays go through .npy and .npz files, figures through JSON.

flower_simulation.py   100 simulated clients: updates per second, total time, memory
flower_deployment.py   a server and five clients that do not train: seconds and bytes per round, memory
environment.py         Flower's own environment, created when it is missing
case.py                what the contenders of a simulation are given
preparing.py           makes what they are given
torch_client.py        the models and a client's training in plain PyTorch
bare_loop.py           the simulation as a bare PyTorch loop
flower_rounds.py       the simulation in Flower
edgefl_rounds.py       the simulation in EdgeFL
flower_echo.py         Flower's app of the deployment
flower_servers.py      Flower's SuperLink and SuperNodes
edgefl_echo.py         an EdgeFL device that does not train
edgefl_servers.py      EdgeFL's coordinator and five such devices
processes.py           memory of process trees, and how they are stopped
loopback.py            bytes on the loopback interface
table.py               how figures and targets are printed
"""

# Takes every sample and does nothing.


def process_event(param_dict):
    pass
